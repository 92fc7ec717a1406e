//! `--why`: where the time goes.

use crate::common::{Place, SMALL};

#[test]
fn why_shows_where_the_time_goes() {
    let place = Place::new();
    let args = [&["run", "sim:config-a", "--why", "--name", "a"], &SMALL[..]].concat();
    let text = place.ok(&args);
    assert!(text.contains("Where the time goes"), "{text}");
    assert!(text.contains("die: own pages"), "{text}");
    assert!(text.contains(" --why"), "the replay line has it: {text}");
    let page = std::fs::read_to_string(place.path().join("results/a/report.html")).unwrap();
    assert!(page.contains("<section id=\"parts\">") && page.contains("Latency over time"));
    // A run that did not ask can be asked afterwards, and has the same figures.
    let plain = [&["run", "sim:config-a", "--name", "b"], &SMALL[..]].concat();
    assert!(!place.ok(&plain).contains("Where the time goes"));
    let again = place.json(&["run", "--spec", "results/b/result.json", "--why", "--keep", "none"]);
    let read = &again["latency_parts_ns"]["read"];
    let (mean, total) = (&again["latency_ns"]["read"]["mean"], &read["mean"]["total"]);
    assert!((mean.as_f64().unwrap() - total.as_f64().unwrap()).abs() < 1e-3, "{mean} {total}");
    let refused = place.fails(2, &["run", "null:", "--why"]);
    assert!(refused.contains("only a simulated target can show where the time goes"), "{refused}");
}
