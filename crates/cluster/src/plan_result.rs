//! The measurements of the steps of a plan, as one value: JSON, CSV, a table and a page are made
//! from it.

use schemars::JsonSchema;
use serde::Serialize;
use ssdyno_figures::{Latency, RunResult, bytes_per_second, csv_cell, nanoseconds, rate};
use ssdyno_report::{Axis, Page, Plot, html_table};
use ssdyno_session::{ErrorBody, Failure, Measured};

use crate::plan::{ClusterPlan, PlannedStep};

/// What a plan measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlanResult {
    /// The plan.
    pub plan: ClusterPlan,
    /// Whether the run ended before all steps were run, or a step has no figures or is partial. Requests with errors do not
    /// make a step partial.
    pub partial: bool,
    /// The steps in order, without steps that were not begun.
    pub steps: Vec<StepResult>,
}

/// Result of a step.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StepResult {
    /// Position of the step in the plan, from 1, with rates and repetitions counted.
    pub number: usize,
    /// Name of the step.
    pub name: String,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// Requested rate in requests per second of all clients together; `null` if the plan sets no rate.
    pub rate: Option<f64>,
    /// The directory of the step's own result, beside this file; `null` without figures or without stored files.
    pub directory: Option<String>,
    /// Figures over all clients; `null` if the step could not run.
    pub figures: Option<StepFigures>,
    /// Figures of each client, in the order of `clients`.
    pub hosts: Vec<StepHost>,
    /// The error of the step.
    pub error: Option<ErrorBody>,
}

/// Figures of a step over the time in which all its clients were running.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct StepFigures {
    /// Whether the step ended early, or a client is missing.
    pub partial: bool,
    /// Requests completed without error.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Requests that never completed. If there are some, latencies are lower bounds.
    pub unanswered: u64,
    /// `requests` per second.
    pub iops: f64,
    /// Bytes read and written, per second.
    pub throughput_bytes_per_second: f64,
    /// From the intended start to the completion; `null` without requests.
    pub latency_ns: Option<Latency>,
}

/// Figures of one client of a step.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct StepHost {
    /// Name of the client.
    pub name: String,
    /// Reason why the client is missing from the figures; `null` if it is included.
    pub lost: Option<String>,
    /// The figures of this client, with the same keys as the figures of a step.
    #[serde(flatten)]
    pub figures: StepFigures,
}

impl StepFigures {
    fn of(result: &RunResult) -> StepFigures {
        StepFigures {
            partial: result.partial,
            requests: result.requests,
            errors: result.errors,
            unanswered: result.unanswered,
            iops: result.iops,
            throughput_bytes_per_second: result.throughput_bytes_per_second,
            latency_ns: result.latency_ns.as_ref().map(|latency| latency.all),
        }
    }
}

impl StepResult {
    /// Of `step`, whose result lies in `directory`.
    pub fn of(
        step: &PlannedStep,
        measured: Result<&Measured, &Failure>,
        directory: Option<String>,
    ) -> StepResult {
        let PlannedStep { number, name, repetition, clients, rate, .. } = step.clone();
        let result = measured.ok().map(|measured| &measured.result);
        // A measured step may have a failure, too, such as a lost host. It is shown next
        // to the figures instead of instead of them.
        let error = measured.map_or_else(Some, |measured| measured.failure.as_ref());
        let hosts = result.map_or(&[][..], |result| &result.hosts).iter().map(|host| StepHost {
            name: host.name.clone(),
            lost: host.lost.clone(),
            figures: StepFigures {
                partial: host.partial,
                requests: host.requests,
                errors: host.errors,
                unanswered: host.unanswered,
                iops: host.iops,
                throughput_bytes_per_second: host.throughput_bytes_per_second,
                latency_ns: host.latency_ns.as_ref().map(|latency| latency.all),
            },
        });
        StepResult {
            number,
            name,
            repetition,
            clients,
            rate,
            directory,
            figures: result.map(StepFigures::of),
            hosts: hosts.collect(),
            error: error.map(Failure::body),
        }
    }

    /// Its name, and which repetition of `of` it is.
    fn title(&self, of: u32) -> String {
        match of {
            1 => self.name.clone(),
            of => format!("{} ({} of {of})", self.name, self.repetition),
        }
    }

    fn is_whole(&self) -> bool {
        // A step with errors that ran to its end was not cut short.
        self.figures.as_ref().is_some_and(|figures| !figures.partial)
    }
}

/// A count of a step that has a column only if it is above zero in a step.
type RareCount = (&'static str, fn(&StepFigures) -> u64);

/// These counts, with their headings.
const RARE: [RareCount; 2] =
    [("errors", |figures| figures.errors), ("never completed", |figures| figures.unanswered)];

/// Columns of the table of steps.
const COLUMNS: [&str; 9] =
    ["step", "name", "clients", "asked", "IOPS", "throughput", "p50", "p99", "max"];

impl PlanResult {
    /// Of a plan with `planned` steps.
    pub fn new(plan: ClusterPlan, planned: usize, steps: Vec<StepResult>) -> PlanResult {
        // A plan that ended early has fewer steps than planned. Without this test a plan that was
        // interrupted between two steps would look complete.
        let partial = steps.len() < planned || !steps.iter().all(StepResult::is_whole);
        PlanResult { plan, partial, steps }
    }

    /// How often the step of the plan that `step` comes from is carried out.
    fn repeats(&self, step: &StepResult) -> u32 {
        // The plan does not say which rows belong together, because each rate and repetition is a step. The
        // name and the rate identify the repetitions of one step.
        let alike = |other: &&StepResult| other.name == step.name && other.rate == step.rate;
        self.steps.iter().filter(alike).map(|other| other.repetition).max().unwrap_or(1)
    }

    /// A row of text for each step, after that with the columns.
    pub fn table(&self) -> Vec<Vec<String>> {
        let all = || self.steps.iter().filter_map(|step| step.figures.as_ref());
        let rare: Vec<RareCount> =
            RARE.into_iter().filter(|(_, count)| all().any(|figures| count(figures) > 0)).collect();
        let headings = COLUMNS.into_iter().chain(rare.iter().map(|(heading, _)| *heading));
        let mut rows = vec![headings.map(str::to_owned).collect::<Vec<_>>()];
        rows.extend(self.steps.iter().map(|step| {
            let asked = step.rate.map_or_else(|| "-".to_owned(), rate);
            let clients = step.clients.len().to_string();
            let mut row =
                vec![step.number.to_string(), step.title(self.repeats(step)), clients, asked];
            match &step.figures {
                Some(figures) => {
                    let mark = if figures.partial { " (partial)" } else { "" };
                    row.push(rate(figures.iops) + mark);
                    row.push(bytes_per_second(figures.throughput_bytes_per_second));
                    let of = figures.latency_ns.as_ref().map(latencies);
                    row.extend(of.unwrap_or_else(|| ["-"; 3].map(str::to_owned)));
                }
                None => row.extend(["failed", "-", "-", "-", "-"].map(str::to_owned)),
            }
            let count = |(_, count): &RareCount| {
                step.figures.as_ref().map_or_else(|| "-".to_owned(), |of| count(of).to_string())
            };
            row.extend(rare.iter().map(count));
            row
        }));
        rows
    }

    /// The errors of steps, a line each.
    pub fn complaints(&self) -> Vec<String> {
        let lines = self.steps.iter().filter_map(|step| {
            let error = step.error.as_ref()?;
            Some(format!("step {} ({}): {}", step.number, step.name, error.message))
        });
        lines.collect()
    }

    /// A line for each step (`host` is `all`) and for each client of it, for other programs: rates by second, times in
    /// nanoseconds. Unknown values are empty. Latencies are lower bounds where `unanswered` is above 0.
    pub fn csv(&self) -> String {
        let mut text = "step,name,repetition,host,rate,partial,requests,errors,unanswered,iops,\
                        throughput_bytes_per_second,latency_ns_mean,latency_ns_p50,latency_ns_p95,latency_ns_p99,latency_ns_p99_9,latency_ns_max\n"
            .to_owned();
        for step in &self.steps {
            let rate = step.rate.map(|rate| rate.to_string()).unwrap_or_default();
            let mut line = |host: &str, rate: &str, figures: Option<&StepFigures>| {
                let StepResult { number, name, repetition, .. } = step;
                text.push_str(&format!(
                    "{number},{},{repetition},{},{rate},",
                    csv_cell(name),
                    csv_cell(host)
                ));
                // Eleven empty columns keep the line as long as the header. A CSV reader would otherwise shift
                // the columns of a failed step or refuse the file.
                text.push_str(&figures.map_or_else(|| ",".repeat(11), columns));
                text.push('\n');
            };
            line("all", &rate, step.figures.as_ref());
            for host in &step.hosts {
                // A lost host has zeros in its figures, because it has no record. Empty columns
                // keep them from being read as measured zeros.
                line(&host.name, "", (host.lost.is_none()).then_some(&host.figures));
            }
        }
        text
    }

    /// The report: one file, opens without a network. Steps with figures lead to their own reports.
    pub fn html(&self, title: &str) -> String {
        let clients = self.plan.clients.len();
        let facts = [format!("{clients} clients"), format!("{} steps", self.steps.len())];
        let mut page = Page::new(title, self.partial, &facts);
        for complaint in self.complaints() {
            page.note(&complaint, true);
        }
        let with_figures: Vec<(f64, &StepFigures)> = self
            .steps
            .iter()
            .filter_map(|step| Some((step.number as f64, step.figures.as_ref()?)))
            .collect();
        page.section("Steps", &[self.rates_plot(&with_figures), latency_plot(&with_figures)]);
        let rows = self.table();
        let header: Vec<&str> = rows[0].iter().map(String::as_str).collect();
        page.section("Table", &[html_table(&header, &rows[1..]), self.links()]);
        page.finish()
    }

    fn rates_plot(&self, steps: &[(f64, &StepFigures)]) -> String {
        let asked: Vec<(f64, f64)> =
            self.steps.iter().filter_map(|step| Some((step.number as f64, step.rate?))).collect();
        let iops: Vec<(f64, f64)> = steps.iter().map(|(at, figures)| (*at, figures.iops)).collect();
        let most = iops.iter().chain(&asked).map(|(_, y)| *y).fold(0.0, f64::max);
        let mut plot =
            Plot::new("IOPS by step", step_axis(steps), Axis::from_zero("IOPS", most, rate));
        if !asked.is_empty() {
            plot.line("write", "asked", &asked);
        }
        plot.line("read", "measured", &iops);
        plot.finish()
    }

    fn links(&self) -> String {
        let mut list = String::new();
        for step in &self.steps {
            if let Some(directory) = &step.directory {
                // The directory name needs no escaping in HTML: `write_step` made it
                // from letters, digits and hyphens only.
                list.push_str(&format!(
                    "<li><a href=\"{directory}/report.html\">step {}</a></li>",
                    step.number
                ));
            }
        }
        if list.is_empty() { list } else { format!("<ul>{list}</ul>") }
    }
}

fn step_axis(steps: &[(f64, &StepFigures)]) -> Axis {
    let last = steps.last().map_or(1.0, |(at, _)| *at);
    Axis { label: "step", from: 0.5, to: last + 0.5, log: false, format: |at| format!("{at}") }
}

fn latency_plot(steps: &[(f64, &StepFigures)]) -> String {
    let of = |pick: fn(&Latency) -> f64| -> Vec<(f64, f64)> {
        let point =
            |(at, one): &(f64, &StepFigures)| Some((*at, one.latency_ns.as_ref().map(pick)?));
        steps.iter().filter_map(point).collect()
    };
    let (median, tail) = (of(|one| one.p50), of(|one| one.p99));
    let all = || median.iter().chain(&tail).map(|(_, ns)| *ns);
    let (from, to) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    // Without any latency the limits are infinity and zero, and a
    // logarithmic axis cannot be drawn from them.
    if to <= 0.0 {
        return String::new();
    }
    let axis = Axis::logarithmic("latency", from, to, nanoseconds);
    let mut plot = Plot::new("Latency by step", step_axis(steps), axis);
    plot.line("read", "p50", &median);
    plot.line("write", "p99", &tail);
    plot.finish()
}

/// Median, p99 and maximum as text, with `≥` for lower bounds.
fn latencies(of: &Latency) -> [String; 3] {
    let [_, p50, _, p99, _, max] = of.lower_bounds();
    [(of.p50, p50), (of.p99, p99), (of.max, max)].map(|(value, is_bound)| {
        format!("{}{}", if is_bound { "≥ " } else { "" }, nanoseconds(value))
    })
}

/// The columns of a line of CSV from `partial` on.
fn columns(figures: &StepFigures) -> String {
    let StepFigures { partial, requests, errors, unanswered, iops, latency_ns, .. } = figures;
    let throughput = figures.throughput_bytes_per_second;
    let latency = latency_ns.map_or_else(
        || ",".repeat(5),
        |one| {
            let all = [one.mean, one.p50, one.p95, one.p99, one.p99_9, one.max];
            all.map(|ns| ns.to_string()).join(",")
        },
    );
    format!("{partial},{requests},{errors},{unanswered},{iops},{throughput},{latency}")
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::LatencyAtMost;

    use super::*;
    use crate::plan::PlanFile;

    fn step(number: usize, unanswered: u64) -> StepResult {
        let at_most = LatencyAtMost { p50: Some(1e3), ..LatencyAtMost::default() };
        let latency = Latency {
            p50: 1e3,
            p99: 2e6,
            max: 3e6,
            at_most: (unanswered > 0).then_some(at_most),
            ..Latency::default()
        };
        let failure = Failure::failed("a: 1 request ended in an error");
        StepResult {
            number,
            name: "s".to_owned(),
            repetition: 1,
            clients: vec!["a".to_owned()],
            rate: None,
            directory: None,
            figures: Some(StepFigures {
                partial: false,
                requests: 9,
                errors: unanswered,
                unanswered,
                iops: 1.0,
                throughput_bytes_per_second: 1.0,
                latency_ns: Some(latency),
            }),
            hosts: Vec::new(),
            error: (unanswered > 0).then(|| failure.body()),
        }
    }

    /// A step with a request that never completed ran to its end: the plan is whole, and the table shows lower bounds.
    #[test]
    fn a_step_with_errors_was_not_cut_short() {
        let plan =
            PlanFile::parse("p.toml", "[[clients]]\nname = \"a\"\nhost = \"h:1\"\n").unwrap().plan;
        let result = PlanResult::new(plan.clone(), 2, vec![step(1, 0), step(2, 1)]);
        assert!(!result.partial && result.complaints().len() == 1);
        let rows = result.table();
        assert_eq!(rows[0][COLUMNS.len()..], ["errors", "never completed"]);
        assert_eq!(rows[1][6..], ["1.000 µs", "2.000 ms", "3.000 ms", "0", "0"]);
        assert_eq!(rows[2][6..], ["1.000 µs", "≥ 2.000 ms", "≥ 3.000 ms", "1", "1"]);
        let csv = result.csv();
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
        let column = lines[0].iter().position(|name| *name == "unanswered").unwrap();
        assert_eq!((lines[1][column], lines[2][column]), ("0", "1"));
        let result = PlanResult::new(plan, 1, vec![step(1, 0)]);
        assert_eq!(result.table()[0].len(), COLUMNS.len(), "no column of zeros");
    }
}
