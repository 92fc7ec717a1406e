//! The page and the screen of runs that are next to nothing: no picture may be empty or lie.

use ssdyno_block::{Completion, Request, Status, Time, Token};
use ssdyno_figures::{Energy, FlashOperations, Keep, RunResult};
use ssdyno_record::Recorder;
use ssdyno_report::{comparison_html, headline_figures, report_html, summary_text};

/// A run of requests that each take `latency_ns`, one after another.
fn run(requests: &[Request], latency_ns: u64) -> RunResult {
    let mut recorder = Recorder::new(Keep::All, None);
    let mut now = Time::ZERO;
    for request in requests {
        recorder.arrived(now);
        let completed = now + Time::from_ns(latency_ns);
        let (token, status) = (Token(0), Status::Ok);
        let completion = Completion { token, status, accepted: now, completed };
        recorder.record(request, now, &completion);
        now = completed;
    }
    let mut result = RunResult { target: "sim:small".into(), ..RunResult::default() };
    recorder.finish(now).fill(&mut result);
    result
}

/// A run in which all failed shows when, and one without errors has no such line.
#[test]
fn a_run_in_which_all_fails_shows_when() {
    let page = |status| {
        let mut recorder = Recorder::new(Keep::Summary, None);
        for at in 0..900 {
            let (start, completed) = (Time::from_us(at), Time::from_us(at + 1));
            recorder.arrived(start);
            let completion = Completion { token: Token(0), status, accepted: start, completed };
            recorder.record(&Request::read(0, 512), start, &completion);
        }
        let mut result = RunResult::default();
        recorder.finish(Time::ZERO).fill(&mut result);
        report_html(&result)
    };
    assert!(page(Status::Error).contains("class=\"line error\""));
    assert!(!page(Status::Ok).contains("line error"));
}

/// Latencies of requests that never completed are lower bounds, and shown as such.
#[test]
fn a_run_with_requests_that_never_completed_shows_lower_bounds() {
    let mut recorder = Recorder::new(Keep::All, None);
    for i in 0..100u64 {
        recorder.arrived(Time::ZERO);
        let (status, us) = if i < 90 { (Status::Ok, i + 1) } else { (Status::Abandoned, 9_900) };
        let completed = Time::from_us(us);
        let completion = Completion { token: Token(0), status, accepted: Time::ZERO, completed };
        recorder.record(&Request::read(0, 4096), Time::ZERO, &completion);
    }
    let mut result = RunResult::default();
    recorder.finish(Time::ZERO).fill(&mut result);
    let text = summary_text(&result);
    assert!(text.contains("10 never completed") && text.contains("≥ 9.9"), "{text}");
    // The tiles of the page and the figures of tables have the sign where the text has it.
    let page = report_html(&result);
    assert!(page.contains("<span>Mean latency</span><b>≥ "), "{page}");
    assert!(page.contains("<span>Max</span><b>≥ 9.9"), "{page}");
    let figures = headline_figures(&result);
    let of = |name: &str| figures.iter().find(|figure| figure.name == name).unwrap().text();
    assert!(of("latency_ns.mean").starts_with("≥ ") && of("latency_ns.p99").starts_with("≥ 9.9"));
    assert!(!of("latency_ns.p50").contains('≥') && !of("iops").contains('≥'));
}

/// The figure with this caption, up to its end.
fn figure<'a>(html: &'a str, caption: &str) -> Option<&'a str> {
    let (_, rest) = html.split_once(&format!("<figcaption>{caption}"))?;
    rest.split("</figure>").next()
}

/// How far the lines of a figure reach across.
fn width(figure: &str) -> f64 {
    let paths = figure.split("<path class=\"line").skip(1);
    let ends = paths.flat_map(|path| {
        let path = path.split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
        let points = path.split(['M', 'L']).filter(|point| !point.is_empty());
        points.map(|point| point.split(' ').next().unwrap().parse().unwrap()).collect::<Vec<f64>>()
    });
    let (least, most) = ends.fold((f64::MAX, 0f64), |(a, b), x| (a.min(x), b.max(x)));
    most - least
}

/// A page cache writes back after seconds of sleep, which lower the mean power: the sentence stands above
/// the table of energy, where it is read first.
#[test]
fn energy_beyond_the_window_is_told_above_its_table() {
    let mut result = run(&[Request::write(0, 4096); 4], 1_000_000);
    result.energy_joules = Some(Energy { total: 2.0, flash: 2.0, ..Energy::default() });
    result.energy_seconds = Some(40.0);
    let text = summary_text(&result);
    let told = text.find("The energy covers 40.00 s: all work was finished").unwrap();
    assert!(told < text.find("Drive energy").unwrap(), "{text}");
    result.energy_seconds = Some(result.simulated_seconds);
    assert!(!summary_text(&result).contains("The energy covers"));
}

#[test]
fn one_request_is_a_line_by_percentile() {
    let mut result = run(&[Request::read(0, 4096)], 62_300);
    result.flash_operations = Some(FlashOperations {
        reads: 1,
        programs: 1,
        erases: 1,
        relocations: 1,
        mapping_programs: 0,
    });
    let html = report_html(&result);
    let drawn = figure(&html, "Latency by percentile").unwrap();
    assert!(width(drawn) > 100.0, "no wider than a point: {drawn}");
    assert!(html.contains("· 1 request ·"), "one of them");
    let text = summary_text(&result);
    assert!(text.contains("\n1 request, "), "{text}");
    assert!(text.contains("1 read, 1 program, 1 erase, 1 relocation\n"), "{text}");
    let compared = comparison_html(&[result.clone(), result.clone()], &[], &[]);
    assert!(compared.contains(", 1 request"), "{compared}");
    assert!(!compared.contains("1 requests"), "{compared}");
    let sums = result.invariants.iter().find(|invariant| invariant.name == "series_sums").unwrap();
    assert!(sums.detail.starts_with("1 of 1 request, "), "{}", sums.detail);
}

#[test]
fn requests_of_no_time_have_no_rates_and_no_pictures() {
    let mut result = run(&[Request::trim(0, 4096); 500], 0);
    result.energy_joules = Some(Energy::default());
    let html = report_html(&result);
    for caption in ["Latency distribution", "Latency by percentile", "Latency", "Power"] {
        assert!(figure(&html, caption).is_none(), "{caption}");
    }
    assert!(html.contains("<span>IOPS</span><b>-</b>"), "no rate in no time");
    assert!(!html.contains("Energy per request"), "no energy in no time");
    let text = summary_text(&result);
    assert!(
        text.contains("IOPS        -\n") && text.contains("no simulated time passed"),
        "{text}"
    );
    assert!(!text.contains("above idle"), "{text}");
    // Among others they have no place on a logarithmic axis, but are no reason for none.
    let mut recorder = Recorder::new(Keep::All, None);
    for (at, latency) in [(0, 0), (0, 0), (0, 1_000), (1_000, 5_000)] {
        let start = Time::from_ns(at);
        let completed = start + Time::from_ns(latency);
        let (token, status) = (Token(0), Status::Ok);
        let completion = Completion { token, status, accepted: start, completed };
        recorder.record(&Request::read(0, 4096), start, &completion);
    }
    let mut result = RunResult::default();
    recorder.finish(Time::from_ns(6_000)).fill(&mut result);
    let html = report_html(&result);
    let figures: Vec<&str> = html.split("<figure").skip(1).collect();
    assert!(figures.len() >= 5, "{}", figures.len());
    for drawn in figures {
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert!(!drawn.contains("00000"), "a scale of nothing: {drawn}");
    }
}

/// The percentiles of the series are drawn beside mean and longest, each at its own height; a result of an older
/// version, which has none, is drawn without.
#[test]
fn percentiles_over_time_are_drawn() {
    let mut recorder = Recorder::new(Keep::All, Some(Time::from_ms(1)));
    let mut now = Time::ZERO;
    for turn in 0..1_000_u64 {
        recorder.arrived(now);
        // Of 100: 60 of 1 us, 34 of 2 us, 4 of 4 us, 2 of 8 us. So p50 is 1 us, the mean 1.6 us, p95 4 us,
        // p99 8 us; and one of all takes 16 us.
        let latency = match (turn, turn % 100) {
            (0, _) => 16_000,
            (_, 1..3) => 8_000,
            (_, 3..7) => 4_000,
            (_, 7..41) => 2_000,
            _ => 1_000,
        };
        let completed = now + Time::from_ns(latency);
        let (token, status) = (Token(0), Status::Ok);
        let completion = Completion { token, status, accepted: now, completed };
        recorder.record(&Request::read(0, 4096), now, &completion);
        now = completed;
    }
    let mut result = RunResult { target: "sim:small".into(), ..RunResult::default() };
    recorder.finish(now).fill(&mut result);
    let height = |drawn: &str, name: &str| {
        let path = drawn.split(&format!("<path class=\"line {name}\" d=\"M")).nth(1)?;
        path.split(['L', ' ', '"']).nth(1)?.parse::<f64>().ok()
    };
    let html = report_html(&result);
    let drawn = figure(&html, "Latency <span").unwrap();
    let heights = ["max", "p99", "p95", "mean", "p50"].map(|name| height(drawn, name).unwrap());
    // Downwards on the page.
    assert!(heights.windows(2).all(|pair| pair[0] < pair[1]), "{heights:?}");
    for point in &mut result.series {
        (point.latency_ns_p50, point.latency_ns_p95, point.latency_ns_p99) = (None, None, None);
    }
    let html = report_html(&result);
    let drawn = figure(&html, "Latency <span").unwrap();
    assert!(height(drawn, "mean").is_some() && !drawn.contains("p99"), "{drawn}");
}
