//! Phone, tablet and desk, light and dark: nothing runs over the edge, everything has a name, text can be read.

use serde_json::json;

use super::{Browser, Ui};
use crate::common::Place;

const SIZES: [(u32, u32); 3] = [(420, 800), (900, 700), (1600, 900)];

/// Roles of what a person operates.
const OPERATED: [&str; 11] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "listbox",
    "checkbox",
    "radio",
    "slider",
    "spinbutton",
    "switch",
];

/// Roles that mean nothing without a name.
const NAMED: [&str; 6] = ["table", "progressbar", "image", "navigation", "figure", "heading"];

#[test]
fn every_view_can_be_used_at_every_size_in_light_and_dark() {
    let place = Place::new();
    let Some(browser) = Browser::new() else { return };
    let ui = Ui::new(&place);
    // Flash, a host and figures; and results of three kinds in the list.
    ui.start("first", "target = \"sim:config-a\"\nworkload = \"randwrite\"\nfor = \"20ms\"\n");
    ui.wait_for_result("first");
    std::fs::create_dir(place.path().join("results/killed")).unwrap();
    let names = ["target", "a-name-that-is-long-enough-for-a-line-of-its-own-on-a-phone"];
    ui.start(names[1], "target = \"sim:config-a\"\nworkload = \"randwrite\"\nfor = \"50ms\"\n");
    ui.wait_for_result(names[1]);
    browser.open(&ui.address);
    browser.wait("!location.search && document.querySelector('#run-result a')");
    browser.js("document.querySelectorAll('details').forEach((each) => { each.open = true; });");
    let mut wrong = Vec::new();
    for (width, height) in SIZES {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.devtools("Emulation.setDeviceMetricsOverride", &size);
        for theme in ["light", "dark"] {
            let scheme =
                json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
            browser.devtools("Emulation.setEmulatedMedia", &scheme);
            browser.wait(&format!("document.documentElement.dataset.theme === '{theme}'"));
            for view in
                ["live", "runs", "run", "pts", "profile", "compare", "sweep", "plan", "probe"]
            {
                let hash = if ["live", "runs"].contains(&view) { view } else { "start" };
                browser.js(&format!("location.hash = '{hash}'"));
                let valid =
                    "document.querySelector('#editor-error').innerText.includes('is valid')";
                let shown = match view {
                    "live" => {
                        "document.querySelector('#table tbody tr')
                        && document.querySelector('#flash canvas')"
                    }
                    "runs" => "document.querySelectorAll('#runs tbody tr').length === 3",
                    _ => &format!("document.querySelector('#keys li') && {valid}"),
                };
                browser.wait(&format!("!document.querySelector('#view-{hash}').hidden && {shown}"));
                if hash == "start" {
                    // Each kind begins with a text that is valid, and has a field for each key.
                    browser.js(&format!(
                        "const what = document.querySelector('#form-task');
                         what.value = '{view}';
                         document.querySelector('#editor-error').replaceChildren();
                         what.dispatchEvent(new Event('change'));"
                    ));
                    browser.wait(valid);
                    browser.js("document.querySelectorAll('#start-form details').forEach((each) => { each.open = true; });");
                }
                let at = format!("{view} at {width} in {theme}");
                let seen = browser.js(include_str!("layout.js"));
                assert_eq!(seen["width"], width, "{at}");
                assert!(seen["texts"].as_u64().unwrap() > 20, "{at}: {seen}");
                let found = seen["found"].as_array().unwrap().iter();
                wrong.extend(found.map(|what| format!("{at}: {}", what.as_str().unwrap())));
                let accessible = browser.accessible();
                let operated = accessible.iter().filter(|(role, _)| OPERATED.contains(&&**role));
                let controls = seen["controls"].as_u64().unwrap() as usize;
                assert!(operated.count() >= controls, "{at}: {controls} {accessible:?}");
                let must = |role: &str| OPERATED.contains(&role) || NAMED.contains(&role);
                let nameless =
                    accessible.iter().filter(|(role, name)| must(role) && name.is_empty());
                wrong.extend(nameless.map(|(role, _)| format!("{at}: a {role} without a name")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(browser.errors(), [] as [String; 0]);
}
