//! Writes the page of a made-up run to the file named, to look at: `… --example sample_report x.html`.

#[path = "../tests/suite/sample.rs"]
mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name the file to write")?;
    let mut result = sample::result(ssdyno_result::Keep::All);
    if let Some(dies) = std::env::args().nth(2)
        && let Some(busy) = &mut result.busy_share
    {
        busy.dies = (0..dies.parse()?).map(|i: u32| f64::from(i * 37 % 100) / 100.0).collect();
    }
    std::fs::write(path, ssdyno_result::report_html(&result))?;
    print!("{}", ssdyno_result::summary_text(&result));
    Ok(())
}
