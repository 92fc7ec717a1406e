use proptest::prelude::*;
use ssdyno_block::Status;
use ssdyno_block::conformance::check_target;

use super::*;
use crate::delay::{self as delays, DelayConfig};
use crate::{DeviceFileError, DeviceKind, DeviceKinds};

const KINDS: DeviceKinds = DeviceKinds::new(&[
    DeviceKind::of::<DelayConfig>(delays::presets::DELAYS),
    DeviceKind::of::<ArrayConfig>(&[]),
]);

fn parse(text: &str) -> Result<ArrayConfig, DeviceFileError> {
    KINDS.parse(text).map(|spec| spec.get::<ArrayConfig>().unwrap().clone())
}

/// A member that takes `us` microseconds for everything, one request at a time.
fn delay(us: u32) -> String {
    format!("{{ delay = {{ capacity = \"1MiB\", read = \"{us}us\", write = \"{us}us\" }} }}")
}

fn text(stripe: &str, members: &[String]) -> String {
    format!("[array]\nstripe = \"{stripe}\"\nmembers = [{}]\n", members.join(", "))
}

fn array(text: &str) -> StripedArray {
    StripedArray::new(&parse(text).unwrap(), 1).unwrap()
}

fn inline(text: &str) -> String {
    let table: toml::Table = toml::from_str(text).unwrap();
    toml::Value::Table(table).to_string()
}

#[test]
fn arrays_keep_the_contract_of_targets() {
    let pair = text("4KiB", &[delay(70), delay(30)]);
    let nested = text("8KiB", &[inline(&pair), delay(50), inline(&pair)]);
    let twice_nested = text("512B", &[inline(&nested), inline(&pair)]);
    let full = pair.replace("write = ", "depth = 2, write = ");
    for text in [pair, nested, twice_nested, full] {
        check_target(|| array(&text));
    }
}

proptest! {
    /// Every byte lies where the definition says, at addresses that follow one another in each member.
    #[test]
    fn pieces_are_what_the_definition_says(
        (count, stripe) in (1usize..6, 1u64..5),
        (first, sectors) in (0u64..200, 1u64..200),
    ) {
        let stripe = stripe * 512;
        let members = vec![delay(1); count];
        let array = array(&text(&format!("{stripe}B"), &members));
        let request = Request::read(first * 512, (sectors * 512) as u32);
        let mut expected = vec![Vec::new(); count];
        for sector in first..first + sectors {
            let (stripe_number, inside) = (sector * 512 / stripe, sector * 512 % stripe);
            let member = (stripe_number % count as u64) as usize;
            expected[member].push(stripe_number / count as u64 * stripe + inside);
        }
        for (member, expected) in expected.iter().enumerate() {
            let piece = array.striping.part_of(&request, member);
            let sectors = piece.map_or(Vec::new(), |piece| {
                let sectors = u64::from(piece.length_bytes) / 512;
                (0..sectors).map(|n| piece.offset_bytes + n * 512).collect()
            });
            prop_assert_eq!(&sectors, expected);
        }
    }
}

/// Submits `requests` at time zero and gives what became of each, by token.
fn all_at_once(array: &mut StripedArray, requests: &[Request]) -> Vec<(Time, Status)> {
    for (token, request) in requests.iter().enumerate() {
        array.submit(Time::ZERO, *request, Token(token as u32)).unwrap();
    }
    let mut out = Vec::new();
    while let Some(next) = array.next_event() {
        array.reap(next, &mut out);
    }
    assert_eq!(out.len(), requests.len());
    out.sort_by_key(|done| done.token);
    out.iter().map(|done| (done.completed, done.status)).collect()
}

/// Four alike members do four times what one does: 100 stripes take as long as 25 on one, to the picosecond.
#[test]
fn throughput_is_that_of_the_members() {
    let mut array = array(&text("4KiB", &vec![delay(100); 4]));
    let requests: Vec<_> = (0..100).map(|n| Request::read(n * 4096, 4096)).collect();
    let done = all_at_once(&mut array, &requests);
    let last = done.iter().map(|(at, _)| *at).max();
    assert_eq!(last, Some(Time::from_us(25 * 100)));
}

/// A request over two members is done when the slower one is.
#[test]
fn a_request_ends_with_its_last_piece() {
    let mut array = array(&text("4KiB", &[delay(100), delay(30)]));
    let requests = [Request::read(0, 4096), Request::read(4096, 4096), Request::write(8192, 8192)];
    let done = all_at_once(&mut array, &requests);
    let times: Vec<_> = done.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [100, 30, 200].map(Time::from_us));
    let mut out = Vec::new();
    let flush = Token(9);
    array.flush(Time::from_ms(1), flush).unwrap();
    array.reap(Time::from_ms(1), &mut out);
    assert_eq!(out.iter().map(|done| done.token).collect::<Vec<_>>(), [flush]);
}

/// If a member fails a request, the array fails it, and no other; after the removal of one member,
/// the others continue.
#[test]
fn an_error_of_a_member_is_one_of_the_array() {
    let fails = |fault: &str| delay(10).replace("} }", &format!("}}, faults = {{ {fault} }} }}"));
    let requests: Vec<_> = (0..8).map(|n| Request::read(n * 4096, 4096)).collect();
    for (fault, status) in
        [("error = 1.0", Status::Error), ("remove_at = \"1us\"", Status::Abandoned)]
    {
        let mut array = array(&text("4KiB", &[delay(10), fails(fault), delay(10)]));
        for (n, (_, got)) in all_at_once(&mut array, &requests).iter().enumerate() {
            let expected = if n % 3 == 1 { status } else { Status::Ok };
            assert_eq!(*got, expected, "{fault}, request {n}");
        }
        assert!(!array.is_gone());
        let report = DeviceReport::of(&array);
        let injected = report.units()[2].injected.unwrap();
        assert!(injected.errors == 3 || injected.removed_at.is_some(), "{injected:?}");
        assert_eq!(report.units()[2].path, "array.delay[1]");
    }
}

/// Parts and keys of members are named by path, and their events carry the number of their unit.
#[test]
fn units_are_named_by_path() {
    let pair = text("4KiB", &[delay(70), delay(30)]);
    let mut array = array(&text("8KiB", &[delay(50), inline(&pair)]));
    let report = DeviceReport::of(&array);
    let named: Vec<_> =
        report.units().iter().map(|unit| (unit.path.as_str(), unit.key.as_str())).collect();
    let expected = [
        ("array", ""),
        ("array.delay[0]", "array.members[0]."),
        ("array.array[1]", "array.members[1]."),
        ("array.array[1].delay[0]", "array.members[1].array.members[0]."),
        ("array.array[1].delay[1]", "array.members[1].array.members[1]."),
    ];
    assert_eq!(named, expected);
    // Stripe 1 is of the inner array: its first half of the first delay, the second of the second.
    let requests = [Request::read(8192, 8192)];
    all_at_once(&mut array, &requests);
    let mut units = Units::default();
    array.events().show_to(&mut units);
    units.0.sort_unstable();
    assert_eq!(units.0, [3, 4]);
}

#[derive(Default)]
struct Units(Vec<u8>);

impl EventReader for Units {
    fn read(&mut self, events: &[Busy]) {
        self.0.extend(events.iter().map(|event| event.part.unit));
    }
}

#[test]
fn impossible_arrays_are_refused_by_their_key() {
    let bad_delay = delay(1).replace("1MiB", "100B");
    let hangs = delay(1).replace("} }", "}, faults = { hang_at = \"1s\" } }");
    let inner = inline(&text("4KiB", &[delay(1), bad_delay.clone()]));
    for (text, key) in [
        (text("4KiB", &[]), "array.members"),
        (text("100B", &[delay(1)]), "array.stripe"),
        (text("2MiB", &[delay(1)]), "array.stripe"),
        (text("4KiB", &[delay(1), bad_delay]), "array.members[1].delay.capacity"),
        (text("4KiB", &[inner]), "array.members[0].array.members[1].delay.capacity"),
        (text("4KiB", &[hangs]), "array.members[0].faults.hang_at"),
        (text("4KiB", &vec![delay(1); 256]), "array.members"),
    ] {
        let config = parse(&text).unwrap();
        let error = StripedArray::new(&config, 1).map(|_| ()).unwrap_err();
        assert_eq!(error.key, key, "{text}: {error}");
    }
}

/// An invalid value of a member is reported with the key of the member.
#[test]
fn unreadable_members_are_refused_by_their_key() {
    let unknown = delay(1).replace("read", "raed");
    let inner = inline(&text("4KiB", &[delay(1), unknown.clone()]));
    for (member, key, says, help) in [
        ("\"nvme-tcl\"", "array.members[1]", "no device \"nvme-tcl\"", "delay-100us, delay-10us"),
        (&unknown, "array.members[1]", "unknown field `raed`", "`read`"),
        (&inner, "array.members[1].array.members[1]", "unknown field `raed`", "`read`"),
        ("{}", "array.members[1]", "missing field `delay`", "set all the keys"),
    ] {
        let error = parse(&text("4KiB", &[delay(1), member.into()])).unwrap_err();
        let DeviceFileError::Member(error) = error else { panic!("{error}") };
        assert_eq!(error.key, key, "{error}");
        assert!(error.problem.contains(says) && error.help.contains(help), "{error:?}");
    }
    // One that is neither a name nor a table, with its place; and one that nobody has read.
    let number = parse(&text("4KiB", &["7".into()])).unwrap_err();
    assert!(matches!(number, DeviceFileError::Unreadable(_)), "{number}");
    let written: ArrayConfig = toml::from_str(&text("4KiB", &[delay(1)])).unwrap();
    let error = StripedArray::new(&written, 1).map(|_| ()).unwrap_err();
    assert_eq!(error.key, "array.members[0]");
}

/// A preset by its name is the same as its file, and is written out in full.
#[test]
fn members_by_name_are_written_out() {
    let spec = KINDS.parse(&text("64KiB", &vec!["\"delay-10us\"".into(); 2])).unwrap();
    let written = spec.to_toml();
    assert!(written.contains("capacity") && !written.contains("delay-10us"), "{written}");
    assert_eq!(KINDS.parse(&written).unwrap(), spec);
    assert_eq!(spec.to_table(KINDS), Some(toml::from_str(&written).unwrap()));
}
