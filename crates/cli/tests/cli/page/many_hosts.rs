//! A plan on two workers and a run with a prober, started from the form and watched on the page.

use serde_json::{Value, json};

use super::tables::{fill, start, text};
use super::{Browser, Ui};
use crate::common::Place;
use crate::hosts::Worker;

/// Types into a field that is always there.
pub(super) fn type_into(browser: &Browser, id: &str, value: &str) {
    browser.js(&format!(
        "const field = document.querySelector('#{id}');
         field.value = {};
         field.dispatchEvent(new Event('input'));",
        json!(value)
    ));
}

/// Presses Start once the text is valid, which is what the page says of it.
fn begin(browser: &Browser, valid: &str) {
    browser.wait(&format!("document.querySelector('#editor-error').innerText.includes('{valid}')"));
    browser.js("document.querySelector('#start').click()");
    browser.wait("location.hash === '#live'");
}

/// Keeps each text that the page shows in `selector` until the run has ended.
fn watch(browser: &Browser, selector: &str) {
    browser.js(&format!(
        "const seen = globalThis.seen = new Set();
         const look = () => {{
           for (const each of document.querySelectorAll('{selector}')) if (each.checkVisibility()) seen.add(each.innerText);
           requestAnimationFrame(look);
         }};
         look();"
    ));
}

fn seen(browser: &Browser) -> Vec<Value> {
    browser.js("return [...globalThis.seen]").as_array().unwrap().clone()
}

const ENDED: &str = "document.querySelector('#run-phase').innerText === 'ended'
    && document.querySelector('#run-result a')";

/// Lines of the chart with this title, by their names and without the title's own.
fn lines(browser: &Browser, title: &str) -> Value {
    browser.js(&format!(
        "const chart = document.querySelector('figure[aria-label=\"{title}\"]');
         return chart?.checkVisibility() ? [...chart.querySelectorAll('.key')].map((each) => each.innerText) : null;"
    ))
}

#[test]
fn a_plan_is_written_in_the_form_and_its_steps_are_seen() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let workers = [Worker::start(&place), Worker::start(&place)];
    let ui = Ui::new(&place);
    start(&browser, &ui, "plan");
    // Device time: on a machine that computes it fast, still several states of each step.
    fill(&browser, "load.for", "3s");
    for (i, worker) in workers.iter().enumerate() {
        fill(&browser, &format!("clients[{i}].host"), &worker.address);
    }
    fill(&browser, "clients[0].name", "left");
    fill(&browser, "clients[1].name", "right");
    fill(&browser, "steps[0].name", "alone");
    fill(&browser, "steps[0].clients", "right");
    type_into(&browser, "form-name", "planned");
    watch(&browser, "#figures dd");
    begin(&browser, "plan with 2 steps and 2 clients");
    browser.wait(ENDED);
    let shown = seen(&browser);
    for step in ["1 of 2: alone", "2 of 2: both"] {
        assert!(shown.contains(&json!(step)), "{step}: {shown:?}");
    }
    let steps = browser.text("return document.querySelector('#steps').innerText");
    assert!(steps.contains("alone") && steps.contains("both"), "{steps}");
    assert_eq!(lines(&browser, "IOPS of each host"), json!(["left", "right"]));
    let rows =
        "return [...document.querySelectorAll('#hosts tbody th')].map((each) => each.innerText)";
    assert_eq!(browser.js(rows), json!(["left", "right"]));
    let result = std::fs::read_to_string(place.path().join("results/planned/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["steps"].as_array().unwrap().len(), 2);
    assert_eq!(browser.errors(), [] as [String; 0]);
}

#[test]
fn a_run_with_a_prober_shows_the_charts_of_each_machine() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let (worker, prober) = (Worker::start(&place), Worker::listening(&place, "prober"));
    let ui = Ui::new(&place);
    start(&browser, &ui, "run");
    for (id, value) in [
        ("form-target", "null:"),
        ("form-limit", "3s"),
        ("form-hosts", &worker.address),
        ("form-probers", &prober.address),
        ("form-interval", "100ms"),
        ("form-name", "watched"),
    ] {
        type_into(&browser, id, value);
    }
    assert!(text(&browser).contains("probe_interval = \"100ms\""), "{}", text(&browser));
    begin(&browser, "target null: on ");
    let machines = "[...document.querySelector('#system-host').options].map((each) => each.value)";
    browser.wait(&format!("{machines}.length === 2"));
    browser.wait(ENDED);
    let mut expected = [worker.address.as_str(), &prober.address];
    expected.sort_unstable();
    assert_eq!(browser.js(&format!("return {machines}.sort()")), json!(expected));
    for machine in expected {
        browser.js(&format!(
            "const host = document.querySelector('#system-host');
             host.value = '{machine}';
             host.dispatchEvent(new Event('change'));"
        ));
        browser.wait("document.querySelector('#system-charts figure')?.checkVisibility()");
        let cpu = lines(&browser, "CPU");
        assert_eq!(cpu, json!(["user", "system", "I/O wait", "interrupts", "other"]), "{machine}");
        // The text of the chart has its newest values, which are drawn.
        browser.wait(
            "/user: last [0-9]/.test(document.querySelector('figure[aria-label=\"CPU\"] canvas').getAttribute('aria-label'))",
        );
    }
    let result = ui.wait_for_result("watched");
    assert_eq!(result["partial"], false, "{result}");
    assert_eq!(browser.errors(), [] as [String; 0]);
}
