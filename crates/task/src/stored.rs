//! The measurements of a task, as files.

#[cfg(target_os = "linux")]
use serde::Serialize;
#[cfg(target_os = "linux")]
use ssdyno_report::{Page, html_table};
use ssdyno_report::{ResultError, series_csv};
use ssdyno_session::ResultFolder;

use crate::runner::TaskResult;
use crate::task::Task;

impl TaskResult {
    /// Writes `result.json` and `report.html` of `task` into `folder`, with `csv` also its rows and series as CSV where it has
    /// any; gives the place.
    ///
    /// # Errors
    /// The first file that cannot be written; the others are there.
    pub fn write(
        &self,
        task: &Task,
        folder: &ResultFolder,
        csv: bool,
    ) -> Result<String, ResultError> {
        // Outside Linux there are neither verifications nor probes, and
        // no other result needs the task.
        #[cfg(not(target_os = "linux"))]
        let _ = task;
        match self {
            TaskResult::Run(run) => {
                // A full disk must not take the result for the sake of its series.
                let series = csv.then(|| series_csv(&run.result));
                let series = series.iter().map(|text| ("series.csv".to_owned(), &**text));
                let written = folder.write_texts(series);
                let place = folder.write_run(&run.result, &run.recording, csv)?;
                written.map(|_| place)
            }
            TaskResult::Pts(result) => folder.write_page(&ssdyno_pts::html(result), result),
            TaskResult::Profile(result) => folder.write_page(&ssdyno_profile::html(result), result),
            TaskResult::Compare(result) => {
                let table = csv.then(|| result.csv());
                let table = table.iter().map(|text| ("comparison.csv".to_owned(), &**text));
                let written = folder.write_texts(table);
                let place = folder.write_page(&result.html(), result)?;
                written.map(|_| place)
            }
            TaskResult::Plan(result) => result.write(folder, crate::plan::TITLE),
            TaskResult::Sweep(result) => ssdyno_sweep::write(result, folder, csv, &|_| None),
            #[cfg(target_os = "linux")]
            TaskResult::Verify(report) => {
                // The report of a verification does not know its target and seed. They come from the
                // task, because a reader needs them to repeat it.
                let (target, seed) = (task.target().unwrap_or_default(), task.seed());
                let stored = StoredVerify { target, seed, report };
                folder.write_page(&verify_page(&stored), &stored)
            }
            #[cfg(target_os = "linux")]
            TaskResult::Probe(samples) => {
                let asked = match task {
                    Task::Probe(probe) => probe.samples as usize,
                    _ => samples.len(),
                };
                // A stopped probe has fewer samples than asked for. Nothing
                // else in the file would show that.
                let stored = StoredProbe { partial: samples.len() < asked, samples };
                folder.write_page(&probe_page(&stored), &stored)
            }
        }
    }
}

/// A verification in `result.json`, with the keys that `ssdyno verify --json` has.
#[cfg(target_os = "linux")]
#[derive(Serialize)]
struct StoredVerify<'a> {
    target: &'a str,
    /// `null` after a crash, where nothing is drawn.
    seed: Option<u64>,
    #[serde(flatten)]
    report: &'a ssdyno_verify::VerifyReport,
}

/// Samples in `result.json`, with the keys that `ssdyno probe --json` has.
#[cfg(target_os = "linux")]
#[derive(Serialize)]
struct StoredProbe<'a> {
    samples: &'a [ssdyno_bench::probe::Sample],
    partial: bool,
}

#[cfg(target_os = "linux")]
fn verify_page(stored: &StoredVerify<'_>) -> String {
    let StoredVerify { target, seed, report } = stored;
    let facts: Vec<String> = seed.iter().map(|seed| format!("seed {seed}")).collect();
    let mut page = Page::new(&format!("{target} - verification"), report.partial, &facts);
    // This is the first line of the page on purpose. Everything below it is less
    // important than a device that returns wrong data.
    if report.faults > 0 {
        page.note(
            "Blocks differ from the data that was written: do not trust this target with \
                   data.",
            true,
        );
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("writes", report.writes.to_string()),
        row("blocks written", format!("{} of {}", report.written_blocks, report.range_blocks)),
        row("blocks read and compared", report.reads.to_string()),
        row("flushes", report.flushes.to_string()),
        row("faults", report.faults.to_string()),
        row("time", ssdyno_figures::seconds(report.wall_seconds)),
    ];
    if let Some(journal) = &report.journal {
        rows.push(row("blocks that the journal promises", journal.promised_blocks.to_string()));
    }
    page.section("Figures", &[html_table(&["", "value"], &rows)]);
    let or_dash = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    let finding = |finding: &ssdyno_verify::Finding| {
        vec![
            format!("{:?}", finding.fault).to_lowercase(),
            finding.offset_bytes.to_string(),
            finding.expected_generation.to_string(),
            or_dash(finding.found_generation),
            or_dash(finding.belongs_to_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = report.findings.iter().map(finding).collect();
    if !rows.is_empty() {
        let header = ["fault", "at byte", "write expected", "found", "belongs to byte"];
        page.section("Findings", &[html_table(&header, &rows)]);
    }
    page.finish()
}

#[cfg(target_os = "linux")]
fn probe_page(stored: &StoredProbe<'_>) -> String {
    let facts = [format!("{} samples", stored.samples.len())];
    let mut page = Page::new("Samples of this machine", stored.partial, &facts);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let machine = |sample: &ssdyno_bench::probe::Sample| {
        let cpu = sample.cpu;
        vec![
            format!("{:.1} s", sample.start_seconds + sample.length_seconds),
            or_dash(cpu.map(|cpu| percent(cpu.user))),
            or_dash(cpu.map(|cpu| percent(cpu.system + cpu.irq + cpu.softirq))),
            or_dash(cpu.map(|cpu| percent(cpu.iowait))),
            or_dash(sample.context_switches_per_second.map(ssdyno_figures::rate)),
        ]
    };
    let rows: Vec<Vec<String>> = stored.samples.iter().map(machine).collect();
    let header = ["until", "user", "system", "I/O wait", "context switches/s"];
    page.section("Processors", &[html_table(&header, &rows)]);
    let mut rows = Vec::new();
    for sample in stored.samples {
        for (name, disk) in &sample.disks {
            rows.push(vec![
                name.clone(),
                format!("{:.1} s", sample.start_seconds + sample.length_seconds),
                ssdyno_figures::rate(disk.reads_per_second),
                ssdyno_figures::rate(disk.writes_per_second),
                ssdyno_figures::bytes_per_second(disk.read_bytes_per_second),
                ssdyno_figures::bytes_per_second(disk.write_bytes_per_second),
                percent(disk.busy_share),
            ]);
        }
    }
    let header = ["device", "until", "reads/s", "writes/s", "read", "written", "busy"];
    page.section("Devices", &[html_table(&header, &rows)]);
    page.finish()
}
