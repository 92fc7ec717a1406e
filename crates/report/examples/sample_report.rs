//! Writes the page of a made-up run, to look at: `… --example sample_report x.html`; without a name
//! into the system's directory for temporary files.

#[path = "../../record/tests/suite/load.rs"]
mod load;
#[path = "../tests/suite/sample.rs"]
mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = std::env::temp_dir().join("ssdyno-sample-report.html");
    let path = std::env::args().nth(1).map_or(default, std::path::PathBuf::from);
    let mut result = sample::result(ssdyno_figures::Keep::All);
    if let Some(dies) = std::env::args().nth(2)
        && let Some(busy) = &mut result.busy_share
    {
        busy.dies = (0..dies.parse()?).map(|i: u32| f64::from(i * 37 % 100) / 100.0).collect();
    }
    std::fs::write(path, ssdyno_report::report_html(&result))?;
    print!("{}", ssdyno_report::summary_text(&result));
    Ok(())
}
