//! Where a pass over the range ends.

use ssdyno_block::{Op, Request, Time};

use super::{play, stream};
use crate::HotPart;

/// The requests of a job, in order.
fn asked(text: &str) -> Vec<Request> {
    let all = play(&format!("[a]\n{text}"), Time::from_us(10));
    all.into_iter().map(|(_, request, _)| request).collect()
}

/// As counted in fio 3.33: a pass of reads and writes in order ends when both together have moved the size,
/// and both begin again at the start of the range.
#[test]
fn a_pass_of_both_directions_in_order_ends_with_the_size() {
    for text in ["bs=4k\nsize=1m\nloops=3\n", "bs=4k\nsize=1m\nio_size=3m\n"] {
        let all = asked(&format!("rw=readwrite\n{text}"));
        assert_eq!(all.len(), 768, "{text}");
        for pass in all.chunks(256) {
            for op in [Op::Read, Op::Write] {
                let mut at = 0;
                for request in pass.iter().filter(|request| request.op == op) {
                    assert_eq!(request.offset_bytes, at, "{text}");
                    at += 4096;
                }
            }
        }
    }
    // The last request of a pass may go beyond its end: that is moved on top.
    let all = asked("rw=readwrite\nbs=4k,8k\nsize=1020k\nloops=2\n");
    let moved: u64 = all.iter().map(|request| u64::from(request.length_bytes)).sum();
    assert!((2 * 1020 * 1024..=2 * 1024 * 1024).contains(&moved), "{moved}");
    assert_eq!(all.iter().filter(|request| request.offset_bytes == 0).count(), 4);
}

#[test]
fn time_goes_before_the_number_of_requests() {
    let text = "rw=randread\nnumber_ios=15\ntime_based\nruntime=10\n";
    assert_eq!(stream(text).requests, None);
    assert_eq!(stream("rw=randread\nnumber_ios=15\nruntime=10\n").requests, Some(15));
}

/// Reads in order pass over their range from its start; hot parts are those of random reads alone.
#[test]
fn a_stream_knows_the_places_of_its_reads() {
    for (text, in_order) in [
        ("rw=read\n", true),
        ("rw=randread\n", false),
        ("rw=read:4k\n", false),
        ("rw=readwrite\nsize=1m\n", false),
        ("rw=read\nzonemode=strided\nzonesize=1m\nzonerange=2m\n", false),
    ] {
        assert_eq!(stream(&format!("bs=4k\n{text}")).reads_in_order(), in_order, "{text}");
    }
    let hot = |text: &str| stream(&format!("bs=4k\nrandom_distribution={text}\n")).hot_part(12_288);
    let some = |space, access| Some(HotPart { space, access });
    assert_eq!(hot("pareto:0.25\nrw=randread"), some(0.25, 0.75));
    assert_eq!(hot("zipf:1.0\nrw=randread"), some(1.0 / 3.0, 0.5));
    assert_eq!(hot("zoned:50/25:50/75\nrw=randread"), some(0.25, 0.5));
    assert_eq!(hot("random\nrw=randread"), None);
    assert_eq!(hot("zipf:1.0\nrw=read"), None);
    assert_eq!(hot("zipf:1.0\nrw=randread:8"), None);
}
