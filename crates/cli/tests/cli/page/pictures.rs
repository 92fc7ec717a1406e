//! The pictures of the README, made from the program itself:
//! `cargo test -p ssdyno --test cli -- --ignored pictures`.

use std::path::Path;

use base64::Engine;
use serde_json::json;

use super::{Browser, Ui};
use crate::common::Place;

fn shoot(browser: &Browser, name: &str) {
    let shot = browser.devtools("Page.captureScreenshot", &json!({ "format": "png" }));
    let png =
        base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    std::fs::create_dir_all(&images).unwrap();
    std::fs::write(images.join(name), png).unwrap();
}

#[test]
#[ignore = "writes docs/images: makes the pictures of the README"]
fn pictures() {
    let place = Place::new();
    let browser = Browser::new().expect("pictures need a browser");
    let ui = Ui::new(&place);
    let size = json!({ "width": 1200, "height": 1150, "deviceScaleFactor": 1, "mobile": false });
    browser.devtools("Emulation.setDeviceMetricsOverride", &size);
    let light = json!({ "features": [{ "name": "prefers-color-scheme", "value": "light" }] });
    browser.devtools("Emulation.setEmulatedMedia", &light);
    // Long enough for the picture of a run under way; it is stopped then.
    ui.start("live", "target = \"sim:nvme-tlc\"\nworkload = \"mixed\"\nfor = \"600s\"\n");
    browser.open(&ui.address);
    browser.wait("!location.search && document.querySelector('#flash canvas')");
    std::thread::sleep(std::time::Duration::from_secs(6));
    shoot(&browser, "live.png");
    ui.post("/api/stop", &json!({}));
    ui.wait_for_result("live");
    let report = place.path().join("results/live/report.html");
    browser.open(&format!("file://{}", report.display()));
    browser.wait("document.querySelector('svg')");
    shoot(&browser, "report.png");
}
