//! Buffered writes of a file: the figures are those of the page cache, and the run says so.

use serde_json::Value;

use crate::common::Place;

/// The warning about memory in `result`, if there is one.
fn warning_of_memory(result: &Value) -> Option<&Value> {
    result["warnings"].as_array().unwrap().iter().find(|one| one["kind"] == "memory")
}

/// By option and by job file. Without them the same load warns only if the file system refuses direct I/O.
#[test]
fn buffered_writes_have_the_figures_of_the_page_cache() {
    let place = Place::new();
    place.write("w.fio", "[w]\nrw=write\nbs=128k\ndirect=0\nioengine=libaio\n");
    place.write("file", vec![7u8; 8 << 20]);
    let file = ["run", "./file", "--write", "--overwrite", "--keep", "none"];
    let load = ["--workload", "seqwrite", "--requests", "64"];
    let buffered = [&load[..], &["--buffered"]].concat();
    for how in [&buffered[..], &["--fio", "w.fio"]] {
        let args = [&file[..], how].concat();
        let result = place.json(&args);
        assert_eq!((&result["page_cache"], &result["requests"]), (&true.into(), &64.into()));
        let warning = warning_of_memory(&result).unwrap();
        let message = warning["message"].as_str().unwrap();
        assert!(message.starts_with("buffered I/O: "), "{how:?}: {message}");
        assert!(message.ends_with("a write completes when its data is in memory"), "{message}");
        assert_eq!(warning["help"], "use direct I/O to measure the target", "{how:?}");
        let verdict = &result["p99_believable"];
        assert_eq!(verdict["believable"], false, "{verdict}");
        let reasons = verdict["reasons"].to_string();
        assert!(reasons.contains("requests went through the page cache"), "{reasons}");
        let text = place.ok(&args);
        assert!(text.split("IOPS").next().unwrap().contains("buffered I/O: "), "{text}");
    }
    let direct = place.json(&[&file[..], &load].concat());
    assert_eq!(direct["page_cache"], warning_of_memory(&direct).is_some(), "{direct}");
}
