//! The server is killed in the middle of a run, and started again at the same port with the same results.

use serde_json::json;

use super::{Browser, Ui};
use crate::common::Place;

const LONG: &str = "target = \"null:\"\nfor = \"60s\"\nkeep = \"summary\"\n\
                    set = [\"workload.arrivals.kind=fixed\", \"workload.arrivals.rate=100\"]\n";

/// The page's text on a run.
const PHASE: &str = "document.querySelector('#run-phase').innerText";

#[test]
fn a_run_that_ended_with_its_server_is_not_shown_as_going_on() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    ui.start("done", "target = \"sim:delay-100us\"\nfor = \"100ms\"\n");
    ui.wait_for_result("done");
    ui.start("cut", LONG);
    browser.open(&ui.address);
    browser.wait(&format!("{PHASE} === 'under load'"));
    // The list does not take the run that goes on for one that was killed.
    browser.js("location.hash = 'runs'");
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 1");
    browser.js("location.hash = 'live'");
    let listen = ui.host().to_owned();
    drop(ui);
    browser.wait("document.querySelector('#banner').innerText.includes('Connection lost at')");
    browser.wait(&format!(
        "{PHASE} === 'not known: no connection' && document.querySelector('#stop').disabled"
    ));

    let ui = Ui::at(&place, &listen);
    browser.wait("document.querySelector('#banner').innerText.includes('Run cut ended when the server stopped.')");
    browser.wait(&format!(
        "{PHASE} === 'ended with its server' && !document.querySelector('#stop').checkVisibility()"
    ));
    assert_eq!(browser.js("return document.querySelector('#progress').checkVisibility()"), false);
    assert!(browser.text("return document.title").starts_with("ended"));

    browser.open(&ui.address);
    browser.wait("document.querySelector('#no-run:not([hidden])')");
    browser.js("location.hash = 'runs'");
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 2");
    let row = |name: &str| {
        let rows = "[...document.querySelectorAll('#runs tbody tr')]";
        browser.text(&format!(
            "return {rows}.find((row) => row.innerText.includes('{name}')).innerHTML"
        ))
    };
    assert!(row("done").contains("/runs/done/report.html"), "{}", row("done"));
    let cut = row("cut");
    assert!(cut.contains("no result") && !cut.contains("report.html"), "{cut}");

    browser.js("location.hash = 'start'");
    browser.wait("document.querySelector('#keys li')");
    browser.js("const name = document.querySelector('#form-name');
         name.value = 'new';
         name.dispatchEvent(new Event('input'));
         document.querySelector('#start').click();");
    browser.wait(&format!("location.hash === '#live' && {PHASE} === 'ended'"));
    let result = ui.wait_for_result("new");
    assert_eq!((&result["partial"], &result["target"]), (&json!(false), &json!("sim:nvme-tlc")));

    // A page that hears of the new server without being loaded anew, because another tab has its cookie.
    ui.start("cut-too", LONG);
    browser.wait(&format!("{PHASE} === 'under load'"));
    browser.offline(true);
    drop(ui);
    let ui = Ui::at(&place, &listen);
    let first = browser.other_tab();
    browser.open(&ui.address);
    browser.wait("document.querySelector('#no-run:not([hidden])')");
    browser.switch_to(&first);
    browser.offline(false);
    browser.wait("document.querySelector('#run-gone:not([hidden])')");
    let told = browser.text("return document.querySelector('#view-live').innerText");
    assert!(told.contains("Run cut-too ended when the server was restarted"), "{told}");
    assert!(!told.contains("under load") && told.contains("No run since"), "{told}");
}
