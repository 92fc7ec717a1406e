//! Plans: shares, steps, clients that come and go, rates; and plans that say what cannot be done.

use ssdyno_cluster::{
    HostAddress, PlanFile, PlanResult, PlanStep, PlannedStep, ReachedHosts, StepResult,
};
use ssdyno_figures::KeepGoing;
use ssdyno_session::Failure;

use crate::common::{at, workers};

fn read(text: &str) -> Result<PlanFile, Failure> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plan.toml");
    std::fs::write(&path, text).unwrap();
    PlanFile::read(path.to_str().unwrap())
}

/// Three clients, named a, b and c.
fn plan(hosts: &[HostAddress], rest: &str) -> PlanFile {
    let client = |(name, host): (&str, &HostAddress)| {
        format!("[[clients]]\nname = \"{name}\"\nhost = \"{host}\"\n")
    };
    let clients: String = ["a", "b", "c"].into_iter().zip(hosts).map(client).collect();
    read(&format!("{clients}{rest}")).unwrap()
}

fn carry_out(file: &PlanFile) -> PlanResult {
    let watch = &mut |_: &_| KeepGoing::Continue;
    let mut hosts = ReachedHosts::open(&at(&file.hosts), watch).unwrap();
    let run =
        |step: &PlannedStep| StepResult::of(step, hosts.run(&step.load, watch).as_ref(), None);
    PlanResult::new(file.plan.clone(), file.steps.len(), file.steps.iter().map(run).collect())
}

/// The number of requests in the window follows from the rate: each client has its share, whoever else is
/// in the step.
#[test]
fn a_rate_is_divided_by_the_shares_of_the_clients_of_the_step() {
    let (_workers, hosts) = workers(3);
    let text = r#"
change = { workload.block_size = "16KiB" }
share = 3
[load]
target = "sim:delay-10us"
workload = "randread"
for = "400ms"
interval = "10ms"
"#;
    let steps = r#"
[[steps]]
name = "alone"
clients = ["c"]
rates = 10000
[[steps]]
name = "all"
rates = { from = 1000, to = 100000, points = 3 }
"#;
    let file = plan(&hosts, &format!("{text}{steps}"));
    let result = carry_out(&file);
    assert!(!result.partial, "{:?}", result.complaints());
    let asked: Vec<Option<f64>> = result.steps.iter().map(|step| step.rate).collect();
    let expected = [10_000.0, 1_000.0, 10_000.0, 100_000.0];
    for (rate, expected) in asked.iter().zip(expected) {
        assert!((rate.unwrap() / expected - 1.0).abs() < 1e-9, "{asked:?}");
    }
    for step in &result.steps {
        let figures = step.figures.as_ref().unwrap();
        let rate = step.rate.unwrap();
        // Poisson: the number of arrivals has its own square root as deviation; five of them, and the edges.
        let count = rate * 0.4;
        let within = 5.0 / count.sqrt() + 0.03;
        assert!((figures.iops / rate - 1.0).abs() < within, "{rate} {}", figures.iops);
        let shares: Vec<f64> = match step.clients.len() {
            1 => vec![1.0],
            _ => vec![0.2, 0.2, 0.6],
        };
        for (host, share) in step.hosts.iter().zip(shares) {
            let (rate, count) = (rate * share, count * share);
            let within = 5.0 / count.sqrt() + 0.03;
            assert!((host.figures.iops / rate - 1.0).abs() < within, "{host:?} {rate}");
        }
        // 16 KiB are of client c alone.
        let c = step.hosts.last().unwrap();
        assert_eq!(c.name, "c");
        assert!((c.figures.throughput_bytes_per_second / c.figures.iops - 16384.0).abs() < 1.0);
    }
}

/// Clients come and go; each has random numbers of its own, the same ones in each step, others in a repetition.
#[test]
fn steps_have_their_clients_and_repetitions_their_seeds() {
    let hosts: Vec<HostAddress> =
        (1..=3).map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
    let file = plan(
        &hosts,
        r#"
[load]
target = "null:"
seed = 40
[[steps]]
clients = ["c", "a"]
[[steps]]
name = "again"
repeat = 2
change = { for = "1s", host.cores = 2 }
"#,
    );
    let told: Vec<(usize, &str, Vec<u64>)> = file
        .steps
        .iter()
        .map(|step| {
            let seeds = step.load.hosts.iter().map(|host| host.spec.seed).collect();
            (step.number, step.name.as_str(), seeds)
        })
        .collect();
    assert_eq!(
        told,
        [(1, "step", vec![40, 42]), (2, "again", vec![40, 41, 42]), (3, "again", vec![43, 44, 45])]
    );
    assert_eq!(file.steps[0].clients, ["a", "c"]);
    assert_eq!(file.steps[0].load.common.duration, None);
    assert_eq!(file.steps[1].load.hosts[0].spec.host.cores, Some(2));
    assert_eq!(file.steps[1].load.common.duration, "1s".parse().ok());
}

#[test]
fn a_step_that_cannot_be_carried_out_leaves_the_others() {
    let (_workers, hosts) = workers(2);
    let file = plan(
        &hosts,
        r#"
[load]
target = "null:"
for = "100ms"
[[steps]]
name = "good"
clients = ["a"]
[[steps]]
name = "bad"
change = { target = "/nowhere/at.all" }
[[steps]]
name = "good again"
"#,
    );
    let result = carry_out(&file);
    assert!(result.partial);
    let whole: Vec<bool> = result.steps.iter().map(|step| step.figures.is_some()).collect();
    assert_eq!(whole, [true, false, true]);
    assert_eq!(result.complaints().len(), 1);
    assert!(
        result.complaints()[0].contains("step 2 (bad)")
            && result.complaints()[0].contains("/nowhere")
    );
    // A line for each step and each client in it.
    let csv = result.csv();
    let lines: Vec<&str> = csv.lines().collect();
    let columns = lines[0].split(',').count();
    assert_eq!(lines.len(), 1 + 2 + 1 + 3, "{csv}");
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{csv}");
    assert!(lines[2].starts_with("1,good,1,a,,false,"), "{csv}");
    assert!(result.html("plan").contains("step 2 (bad)"));
}

#[test]
fn what_a_plan_cannot_mean_is_told_with_its_line() {
    let clients = "[[clients]]\nhost = \"a:1\"\n[[clients]]\nhost = \"b:1\"\n";
    for (text, line, says) in [
        (String::new(), Some(1), "clients"),
        ("clients = []\n".to_owned(), Some(1), "no client is listed"),
        (format!("{clients}[[clients]]\nhost = \"a:1\"\n"), Some(6), "another client uses"),
        (format!("{clients}name = \"a:1\"\n"), Some(5), "twice"),
        (format!("{clients}share = 0\n"), Some(5), "above 0"),
        (format!("{clients}share = 2\n"), Some(5), "no step has `rates`"),
        (format!("{clients}[[clients]]\nhost = \"-x:1\"\n"), Some(6), "not a host"),
        (format!("{clients}[[steps]]\nclients = [\"a:2\"]\n"), Some(6), "no client `a:2`"),
        (format!("{clients}[[steps]]\nclients = [\"a:1\", \"a:1\"]\n"), Some(6), "twice"),
        (format!("{clients}[[steps]]\nrates = []\n"), Some(6), "one or more rates"),
        (format!("{clients}[[steps]]\nrates = [1, -2]\n"), Some(6), "one or more rates"),
        (format!("{clients}[[steps]]\nrates = nan\n"), Some(6), "one or more rates"),
        (
            format!("{clients}[[steps]]\nrates = [1000, \"x\"]\n"),
            Some(6),
            "\"x\", expected a number",
        ),
        (format!("{clients}[[steps]]\nrates = \"x\"\n"), Some(6), "a list of numbers"),
        (
            format!("{clients}[[steps]]\nrates = {{ from = 1, to = 5, pints = 3 }}\n"),
            Some(6),
            "rates.pints`",
        ),
        (format!("{clients}[[steps]]\nrepeat = \"x\"\n"), Some(6), "a whole number"),
        (
            format!("{clients}[[steps]]\nrates = {{ from = 0, to = 5, points = 3 }}\n"),
            Some(6),
            "one or more rates",
        ),
        (
            format!("{clients}[[steps]]\nrates = {{ from = 1, to = 5, points = 1 }}\n"),
            Some(6),
            "1 points",
        ),
        (format!("{clients}[[steps]]\nrepeat = 0\n"), Some(6), "greater than zero"),
        (format!("{clients}[[steps]]\nrepeat = 4000000000\n"), Some(5), "more than 10000"),
        (format!("{clients}[[steps]]\nchange = {{ seed = \"x\" }}\n"), Some(6), "`seed` cannot be"),
        (format!("{clients}[[steps]]\nclient = []\n"), Some(6), "no key `steps"),
        (format!("{clients}[load]\ntargt = \"null:\"\n"), Some(6), "no key `load.targt`"),
    ] {
        let failure = read(&text).unwrap_err();
        assert!(failure.message.contains(says), "{text}: {failure}");
        assert_eq!(failure.body().line, line, "{text}: {failure}");
        let help = failure.help.unwrap();
        assert!(!help.contains("ssdyno explain"), "{text}: no such key of a run: {help}");
    }
}

/// Each form of rates is read as it was before it was written.
#[test]
fn rates_survive_as_toml_and_json() {
    for text in ["5000", "[1000.5, 2000]", "{ from = 1, to = 64, points = 7 }"] {
        let step: PlanStep = toml::from_str(&format!("rates = {text}")).unwrap();
        let as_json = serde_json::to_string(&step).unwrap();
        assert_eq!(serde_json::from_str::<PlanStep>(&as_json).unwrap(), step, "{as_json}");
    }
}

/// The last rate of a sweep is the asked one to the last digit, and the ratios are equal.
#[test]
fn a_sweep_has_equal_ratios() {
    let file = read(
        "[[clients]]\nhost = \"a:1\"\n[[steps]]\nrates = { from = 1000, to = 64000, points = 7 }\n",
    )
    .unwrap();
    let rates: Vec<f64> = file.steps.iter().map(|step| step.rate.unwrap()).collect();
    assert_eq!((rates.len(), rates[0], rates[6]), (7, 1000.0, 64000.0));
    assert!(rates.windows(2).all(|two| (two[1] / two[0] - 2.0).abs() < 1e-9), "{rates:?}");
}
