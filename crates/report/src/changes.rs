//! The differences between the specs of two runs, and whether their figures may be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use ssdyno_block::counted;
use ssdyno_figures::{Change, RunResult, Verdict, Warning, WarningKind, seconds, significant};

/// Keys that decide neither figures nor what they mean: the shape, texts for people, and what is kept.
const SAME_ALL_THE_SAME: [&str; 6] = ["version", "description", "keep", "interval", "why", "write"];

/// Keys that set the length of a load, not its kind.
const LENGTH: [&str; 3] = ["workload.requests", "workload.duration", "workload.ramp_up"];

/// Keys with a name instead of values: what begins with the second follows from the first.
const NAMED: [(&str, &str); 7] = [
    ("workload", "workload."),
    ("workload", "files"),
    ("fio", "workload."),
    ("fio", "files"),
    ("host.name", OF_HOST),
    ("host.network", "network."),
    ("real.buffered", "page cache"),
];

/// Keys of which a load has one, so that to set the first changes both.
const EITHER: [(&str, &str); 2] = [
    ("workload.block_size", "workload.block_sizes"),
    ("workload.block_sizes", "workload.block_size"),
];

/// The keys in which the user asked two runs to differ.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AskedKeys(BTreeSet<String>);

impl AskedKeys {
    /// The keys of which two specs, as JSON, have different values, those of `set` among them.
    pub fn between(first: &Value, second: &Value) -> AskedKeys {
        let [one, other] = [first, second].map(with_settings);
        let names = one.keys().chain(other.keys());
        AskedKeys(names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect())
    }

    /// Whether a difference in `key` follows from the requested ones.
    fn explain(&self, key: &str) -> bool {
        let follows = |pairs: &[(&str, &str)], is_this: fn(&str, &str) -> bool| {
            pairs.iter().any(|(from, to)| is_this(key, to) && self.0.contains(*from))
        };
        self.0.contains(key)
            || follows(&EITHER, |key, to| key == to)
            || follows(&NAMED, |key, to| key.starts_with(to))
    }
}

/// Every key of a spec with its value, each setting as the key that it sets: of several the last one.
fn with_settings(spec: &Value) -> BTreeMap<String, Value> {
    let mut all = keys_of(Some(spec));
    if let Some(Value::Array(settings)) = all.remove("set") {
        let pairs = settings.iter().filter_map(|setting| setting.as_str()?.split_once('='));
        all.extend(pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().into())));
    }
    all
}

/// The prefix of keys of the host file.
const OF_HOST: &str = "contents.host.";

/// The keys whose values differ: first those that the user `asked` to differ, then in the order of the spec. Keys of
/// the device are included only if both devices have the same name, because between two devices nearly all keys differ.
pub(crate) fn changes(first: &RunResult, second: &RunResult, asked: &AskedKeys) -> Vec<Change> {
    let mut pairs: Vec<_> = specs(first).into_iter().zip(specs(second)).collect();
    pairs.dedup();
    let mut all: Vec<Change> = Vec::new();
    for (at, pair) in pairs.into_iter().enumerate() {
        for change in changes_of(pair, (first, second), asked) {
            // Each host has its own seed, which follows from that of the first.
            let is_new = at == 0 || change.key != "seed";
            if is_new && !all.iter().any(|known| known.key == change.key) {
                all.push(change);
            }
        }
    }
    all.sort_by_key(|change| !change.asked_for);
    all
}

/// The specs of `run`: that of each host, if there are hosts. A run whose hosts have none, by an older version, has the keys that
/// were given.
fn specs(run: &RunResult) -> Vec<Option<&Value>> {
    match spec_of_first(run) {
        None => vec![run.spec.as_ref()],
        first => run.hosts.iter().map(|host| host.spec.as_ref().or(first)).collect(),
    }
}

/// The value of `key` in the spec of `run`, of the first host if there are hosts; `None` if the spec does not have the key.
pub(crate) fn value_of(run: &RunResult, key: &str) -> Option<Value> {
    keys_of(specs(run).first().copied().flatten()).remove(key)
}

/// The complete spec of the first host; `None` for a run without hosts, and by an older version.
fn spec_of_first(run: &RunResult) -> Option<&Value> {
    run.hosts.iter().find_map(|host| host.spec.as_ref())
}

/// The same for a pair of specs of two runs, in the order of the spec.
fn changes_of(
    (one, other): (Option<&Value>, Option<&Value>),
    (first, second): (&RunResult, &RunResult),
    asked: &AskedKeys,
) -> Vec<Change> {
    let (one, other) = (keys_of(one), keys_of(other));
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    let same_device = first.target == second.target;
    // A run without a host has none of its keys: `host.driver` shows whether there is a host.
    let has_host = |keys: &BTreeMap<String, Value>| keys.keys().any(|key| key.starts_with(OF_HOST));
    let driver = |keys: &BTreeMap<String, Value>| keys.get("host.driver").cloned();
    let other_driver = driver(&one) != driver(&other);
    let both_have_host = has_host(&one) && has_host(&other);
    let names_only = one_names_only(first, second);
    names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name))
        .filter(|name| same_device || !is_of_device(name))
        .filter(|name| both_have_host || !name.starts_with(OF_HOST))
        .filter(|name| !names_only || (one.contains_key(*name) && other.contains_key(*name)))
        // The driver `direct` has none of the keys of a host: they follow from `host.driver`.
        .filter(|name| {
            let one_sided = one.contains_key(*name) != other.contains_key(*name);
            !(name.starts_with("host.") && one_sided && other_driver)
        })
        .map(|name| Change {
            key: name.clone(),
            first: one.get(name).cloned(),
            second: other.get(name).cloned(),
            asked_for: asked.explain(name),
        })
        .collect()
}

/// Whether one of two runs was on several hosts, by a version that kept no spec of theirs. The spec of that run names its files
/// and has only the keys that were given; the spec of the other has also their contents and defaults. A key in one of them alone
/// is then not a difference.
fn one_names_only(first: &RunResult, second: &RunResult) -> bool {
    let names_only = |run: &RunResult| !run.hosts.is_empty() && spec_of_first(run).is_none();
    names_only(first) != names_only(second)
}

/// Each host has the whole load, so runs with another number of hosts have other loads.
fn other_hosts(first: &RunResult, second: &RunResult) -> Option<String> {
    let [one, other] = [first, second].map(|run| run.hosts.len().max(1));
    let hosts = |count: usize| match count {
        1 => "one host".to_owned(),
        many => format!("{many} hosts"),
    };
    (one != other).then(|| format!("one run used {}, the other {}", hosts(one), hosts(other)))
}

/// What speaks against a comparison.
pub(crate) struct Obstacles {
    /// The reasons; empty if the runs may be compared.
    pub(crate) why: Vec<String>,
    /// One of them is a difference that the user can ask for.
    pub(crate) can_be_asked_for: bool,
}

/// Why the figures of two runs must not be held against each other; empty where they may. A difference that the user
/// requested is not a reason.
pub(crate) fn obstacles(
    first: &RunResult,
    second: &RunResult,
    changes: &[Change],
    asked: &AskedKeys,
) -> Obstacles {
    let (mut why, mut can_be_asked_for) = (Vec::new(), false);
    let is_real = |run: &RunResult| run.simulated_requests_per_wall_second.is_none();
    if is_real(first) != is_real(second) {
        why.push("one target is real, the other is simulated".to_owned());
    }
    why.extend(other_hosts(first, second));
    // A target without a file, such as `null:`, says nothing of the page cache and goes through none.
    let [one, other] = [first, second].map(|run| run.page_cache == Some(true));
    let other_cache = one != other && is_real(first) == is_real(second);
    if other_cache && !asked.explain("page cache") {
        why.push("one run went through the page cache, the other did not".to_owned());
        can_be_asked_for = true;
    }
    let unasked = changes.iter().filter(|change| !change.asked_for);
    let of_load: Vec<&str> =
        unasked.map(|change| change.key.as_str()).filter(|k| is_of_load(k)).collect();
    let without_spec =
        first.spec.is_none() || second.spec.is_none() || one_names_only(first, second);
    if !of_load.is_empty() {
        can_be_asked_for = true;
        why.push(format!("the loads differ ({})", of_load.join(", ")));
    } else if without_spec && first.workload != second.workload {
        why.push(format!("the loads differ ({} and {})", first.workload, second.workload));
    }
    why.extend(overloaded(first, second));
    Obstacles { why, can_be_asked_for }
}

/// A larger share of requests with errors makes two runs unlike: a failed request counts in no rate and no latency, and
/// can take less time than one that succeeds.
const ERRORS_MOST: f64 = 0.01;

/// A run that failed describes only its part before the failure.
fn failed(which: &str, run: &RunResult) -> Option<String> {
    let all = (run.requests + run.errors).max(1);
    let share = run.errors as f64 / all as f64;
    if run.partial && run.errors > 0 {
        let at = seconds(run.simulated_seconds.max(0.0));
        let requests = counted(run.errors, "failed request", "failed requests");
        return Some(format!("the {which} run ended early, after {at}, with {requests}"));
    }
    (share > ERRORS_MOST).then(|| {
        let percent = significant(100.0 * share, 2);
        format!("{percent} % of the requests of the {which} run ended in an error")
    })
}

/// What happened in two runs, the second of which is `verdict`, that makes this verdict one on something else: failures,
/// and a faster run that looks better than it is.
pub(crate) fn flaws(
    first: &RunResult,
    second: &RunResult,
    verdict: Option<Verdict>,
    asked: &AskedKeys,
) -> Vec<String> {
    let failures = [failed("first", first), failed("second", second)];
    // A run that looks better than it is, and is the slower one all the same, is slower.
    let better = match verdict {
        Some(Verdict::Worse) => flattered("first", first, second, asked),
        Some(Verdict::Better) => flattered("second", second, first, asked),
        // Equal to a run without such a warning, a run is slower once its credits or buffers are used up.
        _ => flattered("second", second, first, asked)
            .or_else(|| flattered("first", first, second, asked)),
    };
    failures.into_iter().flatten().chain(better).collect()
}

/// Whether `winner`, the faster of two runs, has a warning that its figures look better than they are, and `loser` does
/// not have it: the figures of a longer run, or those of the media, may then be the worse ones.
fn flattered(
    which: &str,
    winner: &RunResult,
    loser: &RunResult,
    asked: &AskedKeys,
) -> Option<String> {
    // One warning has other numbers in each run. A buffer that never filled and one that filled during the run have
    // the same kind, but not the same effect.
    fn head(warning: &Warning) -> &str {
        let message = warning.message.as_str();
        message.split(|c: char| c.is_ascii_digit()).next().unwrap_or(message)
    }
    let of_loser: Vec<&str> = loser.warnings.iter().map(head).collect();
    // Whoever asks for the page cache on one side wants to see what it does.
    let is_the_question =
        |one: &Warning| one.kind == WarningKind::Memory && asked.0.contains("real.buffered");
    let alone = |one: &&Warning| {
        one.kind.flatters() && !of_loser.contains(&head(one)) && !is_the_question(one)
    };
    let warning = winner.warnings.iter().find(alone)?;
    // The warning itself follows with all its numbers.
    let clause = warning.message.split([':', ';']).next().unwrap_or_default();
    Some(format!("the {which} run may look better than it is ({clause})"))
}

/// The latencies of an overloaded run grow with its length, so their ratio does not describe the target.
fn overloaded(first: &RunResult, second: &RunResult) -> Option<String> {
    let which = match [first, second].map(|run| run.warns_of(WarningKind::Overloaded)) {
        [false, false] => return None,
        [true, true] => "both runs are overloaded: their",
        [true, false] => "the first run is overloaded: its",
        [false, true] => "the second run is overloaded: its",
    };
    Some(format!("{which} latencies depend on the length of the run"))
}

/// Whether a key with this name is one of the device file.
fn is_of_device(key: &str) -> bool {
    const OF_OTHERS: [&str; 14] = [
        "target", "workload", "fio", "seed", "for", "requests", "until", "set", "trace", "host",
        "real", "network", "contents", "files",
    ];
    let table = key.split('.').next().unwrap_or_default();
    !OF_OTHERS.contains(&table)
}

/// Whether it is one of the load.
fn is_of_load(key: &str) -> bool {
    let of_load = ["workload.", "trace.", "files"].iter().any(|start| key.starts_with(start));
    of_load && !LENGTH.contains(&key)
}

/// Every key of a spec with its value. The keys of a device file have no table before them, those of the files
/// of workload and network have `workload.` and `network.`: as `set` takes them.
fn keys_of(spec: Option<&Value>) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let Some(Value::Object(spec)) = spec else { return all };
    for (name, value) in spec {
        if name == "contents" {
            continue;
        }
        // The name of a load adds nothing to its keys.
        let has_contents = spec.get("contents").is_some_and(|c| c.get("workload").is_some());
        if !(name == "workload" && has_contents) {
            flatten(name, value, &mut all);
        }
    }
    if let Some(Value::Object(contents)) = spec.get("contents") {
        for (file, value) in contents {
            let Value::Object(inner) = value else {
                flatten(file, value, &mut all);
                continue;
            };
            for (name, value) in inner {
                let key = match file.as_str() {
                    "device" => name.clone(),
                    "host" => format!("{OF_HOST}{name}"),
                    file => format!("{file}.{name}"),
                };
                flatten(&key, value, &mut all);
            }
        }
    }
    all
}

fn flatten(key: &str, value: &Value, all: &mut BTreeMap<String, Value>) {
    let (first, last) =
        (key.split('.').next().unwrap_or(key), key.rsplit('.').next().unwrap_or(key));
    if SAME_ALL_THE_SAME.contains(&last) || SAME_ALL_THE_SAME.contains(&first) {
        return;
    }
    match value {
        Value::Object(inner) => {
            inner.iter().for_each(|(name, value)| flatten(&format!("{key}.{name}"), value, all));
        }
        // A key that is left out is as one without a value.
        Value::Null => {}
        value => {
            all.insert(key.to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use ssdyno_figures::HostRun;

    use super::*;

    fn run(target: &str, spec: Value) -> RunResult {
        RunResult {
            target: target.into(),
            workload: "w".into(),
            simulated_requests_per_wall_second: Some(1.0),
            spec: Some(spec),
            ..RunResult::default()
        }
    }

    fn spec(block: &str, channels: u32, seed: u64) -> Value {
        json!({
            "version": 1, "target": "sim:a", "workload": "randread", "seed": seed, "keep": "none",
            "contents": {
                "device": { "description": format!("{channels}"), "flash": { "channels": channels } },
                "workload": { "block_size": block, "requests": seed },
            },
        })
    }

    #[test]
    fn keys_that_differ_are_named_as_they_are_typed() {
        let (a, b) = (run("sim:a", spec("4KiB", 8, 1)), run("sim:a", spec("64KiB", 16, 2)));
        let none = AskedKeys::default();
        let told: Vec<String> = changes(&a, &b, &none).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "flash.channels 8 -> 16",
                "seed 1 -> 2",
                "workload.block_size 4KiB -> 64KiB",
                "workload.requests 1 -> 2"
            ]
        );
        let why = obstacles(&a, &b, &changes(&a, &b, &none), &none).why;
        assert_eq!(why, ["the loads differ (workload.block_size)"]);
        // Between two devices nearly all keys differ.
        let other = run("sim:b", spec("4KiB", 16, 1));
        assert_eq!(changes(&a, &other, &none), []);
        assert!(obstacles(&a, &other, &[], &none).why.is_empty());
    }

    /// Differences that the user names are judged; every other difference still prevents a verdict.
    #[test]
    fn differences_that_were_asked_for_are_no_obstacle() {
        let (a, b) = (run("sim:a", spec("4KiB", 8, 1)), run("sim:a", spec("64KiB", 16, 1)));
        let told = |one: Value, other: Value| {
            let asked = AskedKeys::between(&one, &other);
            let changes = changes(&a, &b, &asked);
            (changes[0].to_string(), obstacles(&a, &b, &changes, &asked).why)
        };
        let settings = |of: &[&str]| json!({ "version": 1, "set": of });
        let block = "workload.block_size 4KiB -> 64KiB, as asked for";
        let sized = |size: &str| settings(&["workload.block_size=1KiB", size]);
        let asked = told(sized("workload.block_size=4k"), sized("workload.block_size=64k"));
        assert_eq!(asked, (block.to_owned(), vec![]));
        let named = |name: &str| json!({ "workload": name });
        assert_eq!(told(named("randread"), named("large.toml")), (block.to_owned(), vec![]));
        let contents = |block: &str| json!({ "contents": { "workload": { "block_size": block } } });
        assert_eq!(told(contents("4KiB"), contents("64KiB")), (block.to_owned(), vec![]));
        // The same on both sides, or another key, explains nothing.
        for (one, other) in [
            (sized("workload.block_size=4k"), sized("workload.block_size=4k")),
            (settings(&["workload.depth=1"]), settings(&["workload.depth=2"])),
        ] {
            assert_eq!(told(one, other).1, ["the loads differ (workload.block_size)"]);
        }
        let channels = told(settings(&["flash.channels=8"]), settings(&[]));
        assert_eq!(channels.0, "flash.channels 8 -> 16, as asked for");
        assert_eq!(channels.1.len(), 1);
        // Which cache a real run used is a key of its own.
        let buffered = |on: bool| RunResult {
            simulated_requests_per_wall_second: None,
            page_cache: Some(on),
            ..a.clone()
        };
        let real = |on: bool| json!({ "real": { "buffered": on } });
        let asked = AskedKeys::between(&json!({}), &real(true));
        assert_eq!(obstacles(&buffered(false), &buffered(true), &[], &asked).why, [""; 0]);
        let simulated = obstacles(&a, &buffered(true), &[], &asked).why;
        assert_eq!(simulated, ["one target is real, the other is simulated"]);
    }

    /// The spec of a run on several hosts has names and no contents: the other run did not set these keys.
    #[test]
    fn a_run_on_many_hosts_differs_in_its_hosts_alone() {
        let none = AskedKeys::default();
        let alone = run("sim:a", spec("4KiB", 8, 1));
        let asked = json!({ "version": 1, "target": "sim:a", "workload": "randread", "seed": 1 });
        let hosts = |count: usize| RunResult {
            hosts: vec![HostRun::default(); count],
            ..run("sim:a", asked.clone())
        };
        let why = |a: &RunResult, b: &RunResult| {
            let changes = changes(a, b, &none);
            assert_eq!(changes, []);
            obstacles(a, b, &changes, &none).why
        };
        assert_eq!(why(&hosts(3), &alone), ["one run used 3 hosts, the other one host"]);
        assert_eq!(why(&hosts(1), &alone), [""; 0]);
        assert_eq!(why(&hosts(2), &hosts(3)), ["one run used 2 hosts, the other 3 hosts"]);
        let other = RunResult { workload: "x".into(), ..hosts(1) };
        assert_eq!(why(&other, &alone), ["the loads differ (x and w)"]);
    }

    /// The hosts of both runs were given the same keys. A file or a preset has other contents, which the specs of the hosts have.
    #[test]
    fn runs_on_hosts_differ_in_the_contents_of_their_files() {
        let none = AskedKeys::default();
        let hosts = |specs: &[Option<Value>]| RunResult {
            hosts: specs
                .iter()
                .map(|spec| HostRun { spec: spec.clone(), ..HostRun::default() })
                .collect(),
            ..run("sim:a", json!({ "target": "sim:a", "seed": 1 }))
        };
        let told = |a: &RunResult, b: &RunResult| -> Vec<String> {
            changes(a, b, &none).iter().map(ToString::to_string).collect()
        };
        let all_alike = hosts(&[Some(spec("4KiB", 8, 1)), None]);
        let one_other = hosts(&[Some(spec("4KiB", 8, 1)), Some(spec("4KiB", 16, 2))]);
        assert_eq!(told(&all_alike, &all_alike), [""; 0]);
        // The seed of the second host is none of its own.
        let channels = "flash.channels 8 -> 16";
        assert_eq!(told(&all_alike, &one_other), [channels, "workload.requests 1 -> 2"]);
        let all_other = hosts(&[Some(spec("4KiB", 16, 1)), None]);
        assert_eq!(told(&all_alike, &all_other), [channels]);
        // A run without hosts has the same keys.
        assert_eq!(told(&run("sim:a", spec("4KiB", 8, 1)), &all_other), [channels]);
    }

    #[test]
    fn unlike_targets_are_not_held_against_each_other() {
        let none = AskedKeys::default();
        let obstacles = |a: &RunResult, b: &RunResult| obstacles(a, b, &[], &none).why;
        let a = run("sim:a", spec("4KiB", 8, 1));
        let real = RunResult {
            simulated_requests_per_wall_second: None,
            page_cache: Some(false),
            ..a.clone()
        };
        let buffered = RunResult { page_cache: Some(true), ..real.clone() };
        assert!(obstacles(&a, &real)[0].contains("simulated"));
        assert!(obstacles(&buffered, &real)[0].contains("page cache"));
        let no_file = RunResult { page_cache: None, ..real.clone() };
        assert_eq!(obstacles(&no_file, &real), [""; 0]);
        assert!(obstacles(&no_file, &buffered)[0].contains("page cache"));
        // Results of old programs have no spec.
        let [old, older] =
            ["x", "y"].map(|name| RunResult { spec: None, workload: name.into(), ..a.clone() });
        assert_eq!(obstacles(&old, &older), ["the loads differ (x and y)"]);
    }
}
