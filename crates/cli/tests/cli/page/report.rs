//! Reports in a browser, without a server: tables are sorted and filtered, charts are enlarged.

use serde_json::json;

use crate::common::Place;
use crate::page::browser::Browser;

const ESCAPE: &str = "\u{E00C}";

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

/// Presses the mouse where `element`, an expression, is in sight.
fn press_mouse_on(browser: &Browser, element: &str) {
    let place = browser.js(&format!(
        "const it = {element}; it.scrollIntoView({{ block: 'center' }}); \
         const box = it.getBoundingClientRect(); \
         return [box.x + box.width / 2, box.y + box.height / 2]"
    ));
    for kind in ["mousePressed", "mouseReleased"] {
        let event = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
        browser.devtools("Input.dispatchMouseEvent", &event);
    }
}

#[test]
fn a_chart_is_enlarged_by_the_mouse_and_closed_by_escape() {
    let Some(browser) = Browser::new() else { return };
    let place = Place::new();
    place.ok(&["run", "sim:nvme-tlc", "--workload", "mixed", "--requests", "20000", "--name", "a"]);
    let report = place.path().join("results/a/report.html");
    browser.open(&format!("file://{}", report.display()));
    let buttons = browser.js("return document.querySelectorAll('button.enlarge').length");
    let buttons = buttons.as_u64().unwrap();
    assert!(buttons >= 3, "{buttons}");
    let width =
        |of: &str| browser.js(&format!("return {of}.getBoundingClientRect().width")).as_f64();
    for number in [0, buttons - 1] {
        let button = format!("document.querySelectorAll('button.enlarge')[{number}]");
        let zoomed = format!("document.getElementById({button}.getAttribute('popovertarget'))");
        press_mouse_on(&browser, &button);
        browser.wait(&format!("{zoomed}.matches(':popover-open')"));
        let (large, small) = (
            width(&format!("{zoomed}.querySelector('svg')")),
            width(&format!("{button}.closest('figure')")),
        );
        assert!(large >= small && large > Some(0.0), "{large:?} {small:?}");
        browser.press(ESCAPE);
        browser.wait(&format!("!{zoomed}.matches(':popover-open')"));
        // The button that closes it does so, too.
        press_mouse_on(&browser, &button);
        browser.wait(&format!("{zoomed}.matches(':popover-open')"));
        press_mouse_on(&browser, &format!("{zoomed}.querySelector('button')"));
        browser.wait(&format!("!{zoomed}.matches(':popover-open')"));
    }
    assert_eq!(browser.errors(), [""; 0]);
}
