//! Everything by keyboard: nothing here sends an event of a mouse.

use serde_json::Value;

use super::browser::{CONTROL, ENTER, TAB};
use super::{Browser, Ui};
use crate::common::Place;

/// Presses of Tab that reach anything of the page at most: each key in the list of keys has a button.
const STOPS_MAX: usize = 200;

/// Marks everything that the keyboard must reach; gives their number.
const MARK: &str = "const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex=\"0\"]')]
      .filter((node) => !node.disabled && node.checkVisibility());
    all.forEach((node, i) => { node.dataset.stop = i; });
    document.activeElement.blur();
    scrollTo(0, 0);
    return all.length;";

/// What has the focus, which a person must be able to see.
pub(super) fn focus(browser: &Browser) -> Option<Value> {
    let focus = browser.js(include_str!("focus.js"));
    if focus.is_null() {
        return None;
    }
    assert!(focus["ringed"] == true, "the focus has no ring: {focus}");
    assert!(focus["seen"] == true, "the focus is out of sight or covered: {focus}");
    Some(focus)
}

/// Presses Tab until the element in focus has the value `wanted` for `key`.
fn tab_to(browser: &Browser, key: &str, wanted: &str) {
    for _ in 0..STOPS_MAX {
        browser.press(TAB);
        if focus(browser).is_some_and(|focus| focus[key] == wanted) {
            return;
        }
    }
    panic!("Tab never reaches {key} {wanted}");
}

/// Types over what the field in focus has.
fn fill(browser: &Browser, text: &str) {
    browser.chord(CONTROL, 'a');
    browser.press(text);
}

/// Tab reaches everything that is in sight, in one round.
fn tour(browser: &Browser) {
    let all = browser.js(MARK).as_u64().unwrap() as usize;
    let mut reached = vec![false; all];
    for _ in 0..STOPS_MAX {
        browser.press(TAB);
        // Behind the last element the browser itself has the focus, and then the first one.
        let Some(focus) = focus(browser) else { continue };
        let stop = focus["stop"].as_str().map(|stop| stop.parse::<usize>().unwrap());
        // Something else that takes the focus is a region that scrolls.
        let Some(stop) = stop else { continue };
        if std::mem::replace(&mut reached[stop], true) {
            break;
        }
    }
    let missed: Vec<String> = (0..all)
        .filter(|stop| !reached[*stop])
        .map(|stop| {
            browser
                .text(&format!("return document.querySelector('[data-stop=\"{stop}\"]').outerHTML"))
        })
        .collect();
    assert!(all > 5 && missed.is_empty(), "Tab misses {missed:?} of {all}");
}

#[test]
fn a_run_is_started_watched_and_read_by_keyboard() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    browser.open(&ui.address);
    browser.wait("location.pathname === '/' && !location.search && document.querySelector('#no-run:not([hidden])')");
    tab_to(&browser, "href", "#start");
    browser.press(ENTER);
    // The view that was asked for has the focus, so that its content comes next.
    browser.wait("document.activeElement.id === 'start-title'");
    browser.wait("document.querySelector('#targets option')");
    let is_preset = "return [...document.querySelectorAll('#targets option')].some((each) => each.value === 'sim:delay-100us')";
    assert_eq!(browser.js(is_preset), true);
    tour(&browser);
    tab_to(&browser, "id", "form-target");
    fill(&browser, "sim:delay-100us");
    tab_to(&browser, "id", "form-name");
    browser.press("by-keyboard");
    // The editor of the spec lets go of Tab.
    tab_to(&browser, "id", "start");
    browser.wait("document.querySelector('#editor-error').innerText.includes('is valid')");
    browser.press(ENTER);
    browser.wait(
        "location.hash === '#live' && document.querySelector('#run-phase').innerText === 'ended'",
    );
    assert_eq!(browser.text("return document.activeElement.id"), "live-title");
    browser.wait("document.querySelector('#run-result a')");
    // A simulation can be over before anybody looks; what is said is said at its end, too.
    let said = browser.text("return document.querySelector('#announce').textContent");
    assert_eq!(said, "Run by-keyboard: ended, the result is written");
    tour(&browser);
    tab_to(&browser, "href", "#runs");
    browser.press(ENTER);
    browser.wait(
        "document.activeElement.id === 'runs-title' && document.querySelector('#runs tbody a')",
    );
    tour(&browser);
    tab_to(&browser, "href", "/runs/by-keyboard/report.html");
    browser.press(ENTER);
    browser.wait("location.pathname === '/runs/by-keyboard/report.html' && document.readyState === 'complete'");
    let report = browser.text("return document.body.innerText");
    assert!(report.contains("sim:delay-100us") && report.contains("randread"), "{report}");
    let result = std::fs::read_to_string(place.path().join("results/by-keyboard/result.json"));
    let result: Value = serde_json::from_str(&result.unwrap()).unwrap();
    assert_eq!(
        (&result["target"], &result["partial"]),
        (&Value::from("sim:delay-100us"), &Value::from(false))
    );
    assert_eq!(browser.errors(), [] as [String; 0]);
}
