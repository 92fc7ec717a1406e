//! Tables of a spec and arrays of tables of a plan in the form: made from the schema, and the same as the text.

use serde_json::json;

use super::browser::{ENTER, TAB};
use super::keyboard::focus;
use super::many_hosts::type_into;
use super::{Browser, Ui};
use crate::common::Place;

/// Opens the view Start with the first text of a kind.
pub(super) fn start(browser: &Browser, ui: &Ui, kind: &str) {
    browser.open(&format!("{}#start", ui.address));
    browser.wait("!location.search");
    browser.js("location.hash = 'start'");
    browser.wait("document.querySelector('#keys li')");
    browser.js(&format!(
        "const what = document.querySelector('#form-task');
         what.value = '{kind}';
         what.dispatchEvent(new Event('change'));"
    ));
    browser.wait("document.querySelector('[data-key]')");
}

/// Errors in the console but for the server's answers to texts that are not valid.
fn errors(browser: &Browser) -> Vec<String> {
    browser.errors().into_iter().filter(|error| !error.contains("/api/check")).collect()
}

/// Types into the field of a key.
pub(super) fn fill(browser: &Browser, key: &str, value: &str) {
    browser.js(&format!(
        "const field = document.querySelector('[data-key=\"{key}\"]');
         field.focus();
         field.value = {};
         field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input'));
         field.blur();",
        json!(value)
    ));
}

fn field(browser: &Browser, key: &str) -> String {
    browser.text(&format!("return document.querySelector('[data-key=\"{key}\"]').value"))
}

pub(super) fn text(browser: &Browser) -> String {
    browser.text("return document.querySelector('#editor').value")
}

fn set_text(browser: &Browser, text: &str) {
    browser.js(&format!(
        "const editor = document.querySelector('#editor');
         editor.value = {};
         editor.dispatchEvent(new Event('input'));",
        json!(text)
    ));
}

/// What a schema says of tables that no field of the form has: the page has no field, or the field has no help.
const MISSED: &str = "return Promise.all([fetch('/api/schema'), fetch('/api/schema/task'), import('/assets/schema.js')])
    .then(async ([spec, task, { keysOf, variantOf }]) => {
      const kind = document.querySelector('#form-task').value;
      const fields = new Set([...document.querySelectorAll('[data-key]')]
        .filter((each) => document.getElementById(each.getAttribute('aria-describedby').split(' ')[0]).textContent.length > 3)
        .map((each) => each.dataset.key.replace(/\\[\\d+\\]/g, '')));
      const fixed = ['task', 'target', 'workload', 'for', 'requests', 'real.probe_interval'];
      const keys = keysOf(kind === 'run' ? await spec.json() : variantOf(await task.json(), 'task', kind));
      const inside = (key) => keys.some((each) => !each.table && !each.many && key.path.startsWith(`${each.path}.`));
      const wanted = keys.filter((key) => !key.table && !key.many && !/(^|\\.)contents\\./.test(key.path) && !inside(key));
      return { of: wanted.length, missed: wanted.map((key) => key.path).filter((path) => !fields.has(path) && !fixed.includes(path)) };
    })";

#[test]
fn each_key_of_each_table_has_a_field_with_help() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    for (kind, least) in [
        ("run", 40),
        ("pts", 30),
        ("profile", 30),
        ("compare", 90),
        ("sweep", 50),
        ("plan", 50),
        ("verify", 10),
        ("probe", 3),
    ] {
        start(&browser, &ui, kind);
        // An element of each array of tables; those of a plan are there.
        browser.js(
            "[...document.querySelectorAll('button')].find((each) => each.textContent === 'Add to specs')?.click()",
        );
        let found = browser.js(MISSED);
        assert_eq!(found["missed"], json!([]), "{kind}");
        assert!(found["of"].as_u64().unwrap() >= least, "{kind}: {found}");
    }
    assert_eq!(errors(&browser), [] as [String; 0]);
}

#[test]
fn fields_of_tables_are_the_text() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    start(&browser, &ui, "run");
    fill(&browser, "real.jobs", "3");
    fill(&browser, "host.name", "linux");
    fill(&browser, "set", "workload.depth=4, workload.threads=2");
    let shown = text(&browser);
    assert!(shown.contains("[real]\njobs = 3\n"), "{shown}");
    assert!(shown.contains("[host]\nname = \"linux\"\n"), "{shown}");
    assert!(
        shown.contains("set = [\"workload.depth=4\", \"workload.threads=2\"]\n[")
            || shown.contains("set = [\"workload.depth=4\", \"workload.threads=2\"]\n\n["),
        "{shown}"
    );
    fill(&browser, "real.jobs", "");
    assert!(!text(&browser).contains("jobs"));
    // From the text into the fields; a table in braces is left to the text.
    set_text(&browser, "target = \"null:\"\nreal = { jobs = 2 }\nhost.cores = 5\n");
    assert_eq!(
        (field(&browser, "host.cores"), field(&browser, "real.jobs")),
        ("5".into(), String::new())
    );
    assert_eq!(
        browser.js("return document.querySelector('[data-key=\"real.jobs\"]').disabled"),
        true
    );
    fill(&browser, "host.name", "linux");
    assert!(text(&browser).contains("host.cores = 5\nhost.name = \"linux\""), "{}", text(&browser));
    assert_eq!(errors(&browser), [] as [String; 0]);
}

/// Presses Enter on the button with this text, which must have been reached by Tab.
fn press(browser: &Browser, button: &str) {
    for _ in 0..150 {
        if browser.text("return document.activeElement.textContent") == button {
            browser.press(ENTER);
            return;
        }
        browser.press(TAB);
        focus(browser);
    }
    panic!("Tab never reaches {button}");
}

#[test]
fn clients_and_steps_are_added_changed_and_removed_by_keyboard() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    start(&browser, &ui, "plan");
    let all = "return [...document.querySelectorAll('[data-key^=\"clients[\"][data-key$=\".host\"]')].map((each) => each.value)";
    assert_eq!(browser.js(all), json!(["127.0.0.1:7801", "127.0.0.1:7802"]));
    browser.js("document.querySelector('#form-task').focus()");
    press(&browser, "Add to clients");
    // The first field of what was added has the focus.
    assert_eq!(browser.text("return document.activeElement.dataset.key"), "clients[2].host");
    browser.press("127.0.0.1:7803");
    browser.press(TAB);
    browser.press("c");
    assert!(
        text(&browser).contains(
            "name = \"b\"\n\n[[clients]]\nhost = \"127.0.0.1:7803\"\nname = \"c\"\n\n[[steps]]"
        ),
        "{}",
        text(&browser)
    );
    browser.wait(
        "document.querySelector('#editor-error').innerText.includes('2 steps and 3 clients')",
    );
    press(&browser, "Add to steps");
    assert_eq!(browser.text("return document.activeElement.dataset.key"), "steps[2].name");
    browser.press("rates");
    fill(&browser, "steps[2].clients", "b, c");
    fill(&browser, "steps[2].rates", "{ from = 100, to = 400, points = 3 }");
    fill(&browser, "clients[1].change", "workload.depth = 4");
    browser.wait(
        "document.querySelector('#editor-error').innerText.includes('5 steps and 3 clients')",
    );
    let shown = text(&browser);
    assert!(
        shown.contains("name = \"rates\"\nclients = [\"b\", \"c\"]\nrates = { from = 100, to = 400, points = 3 }")
            && shown.contains("change = { workload.depth = 4 }"),
        "{shown}"
    );
    browser.js("document.querySelector('#form-task').focus()");
    press(&browser, "Remove clients 1");
    assert_eq!(browser.js(all), json!(["127.0.0.1:7802", "127.0.0.1:7803"]));
    assert_eq!(browser.text("return document.activeElement.textContent"), "Add to clients");
    assert_eq!(field(&browser, "clients[0].change"), "workload.depth = 4");
    // The first step names the client that is gone: the error is that of the text.
    browser.wait("document.querySelector('#editor-error').dataset.kind === 'bad'");
    assert_eq!(errors(&browser), [] as [String; 0]);
}

/// The field that an error is about is marked, and described by the error, until the text is right.
#[test]
fn an_error_marks_its_field() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    start(&browser, &ui, "run");
    let is_marked = |field: &str| {
        format!(
            "document.querySelector('{field}').getAttribute('aria-invalid') === 'true'
             && document.querySelector('{field}').getAttribute('aria-describedby').endsWith(' editor-error')"
        )
    };
    let marked = "document.querySelectorAll('#start-form [aria-invalid=true]:not(#editor)').length";
    let jobs = "[data-key=\"real.jobs\"]";
    fill(&browser, "real.jobs", "many");
    browser.wait(&is_marked(jobs));
    assert_eq!(browser.js(&format!("return {marked}")), 1);
    fill(&browser, "real.jobs", "");
    browser.wait(&format!("{marked} === 0"));
    let described =
        format!("return document.querySelector('{jobs}').getAttribute('aria-describedby')");
    assert!(!browser.text(&described).contains("editor-error"));
    type_into(&browser, "form-target", "sim:nothing");
    browser.wait(&is_marked("#form-target"));
    type_into(&browser, "form-target", "sim:nvme-tlc");
    browser.wait(&format!("{marked} === 0"));
}

/// The line of an error in a table of an array belongs to the field of that member.
#[test]
fn an_error_in_a_list_marks_its_field() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    start(&browser, &ui, "plan");
    fill(&browser, "clients[1].host", "no port:");
    let field = "[data-key=\"clients[1].host\"]";
    browser.wait(&format!(
        "document.querySelector('{field}')?.getAttribute('aria-invalid') === 'true'"
    ));
}

#[test]
fn a_plan_without_clients_and_steps_stays_a_plan() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    start(&browser, &ui, "plan");
    let press = |label: &str| {
        browser.js(&format!(
            "[...document.querySelectorAll('button')].find((each) => each.textContent === '{label}').click()"
        ));
    };
    for label in ["Remove clients 2", "Remove clients 1", "Remove steps 2", "Remove steps 1"] {
        press(label);
    }
    let shown = text(&browser);
    assert!(!shown.contains("[[") && shown.starts_with("task = \"plan\"\n"), "{shown}");
    assert_eq!(browser.text("return document.querySelector('#form-task').value"), "plan");
    press("Add to clients");
    fill(&browser, "clients[0].host", "127.0.0.1:7801");
    let shown = text(&browser);
    assert!(shown.contains("[[clients]]\nhost = \"127.0.0.1:7801\"\n"), "{shown}");
}

#[test]
fn a_simulated_run_says_why_its_machine_has_no_curves() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    browser.open(&ui.address);
    ui.start("simulated", "target = \"sim:nvme-tlc\"\nworkload = \"randread\"\nfor = \"5s\"\n");
    browser.wait("document.querySelector('#source-note').textContent.startsWith('No curves')");
    assert_eq!(browser.js("return document.querySelector('#system-charts').hidden"), true);
}
