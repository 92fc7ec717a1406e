//! The report of a sweep in a browser: its table is sorted and filtered without a server.

use crate::common::Place;
use crate::page::browser::Browser;

/// The column `at` of the rows that are shown.
fn column(browser: &Browser, at: usize) -> Vec<String> {
    let rows = format!(
        "return [...document.querySelectorAll('.sortable tbody tr')].filter((row) => !row.hidden)\
         .map((row) => row.cells[{at}].textContent).join('\\n')"
    );
    browser.text(&rows).lines().map(str::to_owned).collect()
}

fn click(browser: &Browser, heading: &str) {
    browser.js(&format!(
        "for (const button of document.querySelectorAll('.sortable th button')) \
         if (button.textContent === '{heading}') {{ button.click(); return; }}"
    ));
}

#[test]
fn the_designs_of_a_report_are_sorted_and_filtered() {
    let Some(browser) = Browser::new() else { return };
    let place = Place::new();
    // From 10 us to 1.28 ms: units change along the column.
    let vary = ["--vary", "workload.depth=2,128,8,32,1", "--vary", "seed=1,2"];
    let sweep =
        ["sweep", "sim:delay-10us", "--requests", "500", "--objective", "mean", "--name", "a"];
    place.ok(&[&sweep[..], &vary].concat());
    let report = place.path().join("results/a/report.html");
    browser.open(&format!("file://{}", report.display()));
    let depths = |browser: &Browser| -> Vec<u32> {
        column(browser, 1).iter().map(|text| text.parse().unwrap()).collect()
    };
    assert_eq!(depths(&browser).len(), 10);
    click(&browser, "latency_ns.mean");
    assert_eq!(depths(&browser), [1, 1, 2, 2, 8, 8, 32, 32, 128, 128]);
    click(&browser, "latency_ns.mean");
    assert_eq!(depths(&browser), [128, 128, 32, 32, 8, 8, 2, 2, 1, 1]);
    let sorted = "return document.querySelector('.sortable th[aria-sort]').ariaSort";
    assert_eq!(browser.text(sorted), "descending");
    click(&browser, "workload.depth");
    assert_eq!(depths(&browser), [1, 1, 2, 2, 8, 8, 32, 32, 128, 128]);
    browser
        .js("const field = document.querySelector('input[type=search]'); field.value = 'FRONT'; \
         field.dispatchEvent(new Event('input'))");
    let left = depths(&browser);
    assert!(
        !left.is_empty() && left.len() < 10 && left.iter().all(|depth| *depth == 1),
        "{left:?}"
    );
    assert_eq!(
        browser.text("return document.querySelector('[role=status]').textContent"),
        format!("{} of 10", left.len())
    );
    assert_eq!(browser.errors(), [""; 0]);
    // The browser opens pages of its own, too.
    let asked: Vec<String> =
        browser.requests().into_iter().filter(|url| url.starts_with("http")).collect();
    assert_eq!(asked, [""; 0]);
}
