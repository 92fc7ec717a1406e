//! Pages from elsewhere in the same browser, which sends the cookie with their requests: they start, stop and read
//! nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;

use super::{Browser, Ui};
use crate::common::Place;

/// A server of a page at another port of this machine: another origin, but the same site, so `SameSite` does not help.
fn elsewhere() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    // It ends with the tests.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A browser opens connections in advance and sends nothing on them.
            std::thread::spawn(move || {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let page = "<!doctype html><link rel=icon href=data:,><title>x</title><p>x</p>";
                let length = page.len();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{page}");
            });
        }
    });
    address
}

#[test]
fn pages_from_elsewhere_start_stop_and_read_nothing() {
    let place = Place::new();
    let rules = "--host-resolver-rules=MAP evil.example 127.0.0.1";
    let Some(browser) = Browser::with(&[rules]) else { return };
    let ui = Ui::new(&place);
    let other = elsewhere();
    // The browser has the cookie.
    browser.open(&ui.address);
    browser.wait(
        "!location.search && document.querySelector('#connection').innerText === 'connected'",
    );
    let attack = |base: &str| {
        let script = include_str!("attack.js");
        let constants = format!("const [BASE, TOKEN] = ['{base}', '{}'];", ui.token());
        browser.js(&format!("return (async () => {{ {constants}\n{script} }})()"))
    };
    // The same requests of the page itself are answered, so what is refused below is refused for its origin.
    let own = attack(ui.origin());
    assert!(own.as_array().unwrap().len() >= 6, "{own}");
    assert!(own.to_string().contains("/api/runs"), "{own}");
    browser.wait("document.querySelector('#run-phase').innerText === 'ended'");
    // Stopped before its first request, it leaves nothing.
    let _ = std::fs::remove_dir_all(place.path().join("results"));
    let pages =
        [other.clone(), other.replace("127.0.0.1", "localhost"), "data:text/html,x".to_owned()];
    for page in &pages {
        browser.open(page);
        assert_eq!(attack(ui.origin()), json!([]), "{page}");
    }
    // A form cannot say that it sends JSON, nor set a header. The answer takes the place of the page.
    browser.open(&other);
    browser.js(&format!(
        "const form = document.createElement('form');
         Object.assign(form, {{ method: 'post', enctype: 'text/plain', action: '{}/api/runs' }});
         const field = document.createElement('input');
         Object.assign(field, {{ name: '{{\"name\": \"evil\", \"toml\": \"', value: '\"}}' }});
         form.append(field);
         document.body.append(form);
         form.submit();",
        ui.origin()
    ));
    browser.wait("document.body.innerText.includes('pages of other origins are refused')");
    // A name of the attacker that leads here: one origin with the server, if the server went by that.
    let port = ui.host().rsplit(':').next().unwrap();
    let rebound = format!("http://evil.example:{port}");
    browser.open(&format!("{rebound}/?token={}", ui.token()));
    let told = browser.text("return document.body.innerText");
    assert!(told.contains("this server does not have that name"), "{told}");
    assert_eq!(attack(&rebound), json!([]));
    let results = place.path().join("results");
    assert!(!results.exists(), "a run was started");
    // A run that goes on meanwhile is not stopped.
    let rate = "set = [\"workload.arrivals.kind=fixed\", \"workload.arrivals.rate=100\"]";
    ui.start("victim", &format!("target = \"null:\"\nfor = \"4s\"\n{rate}\n"));
    for page in &pages {
        browser.open(page);
        assert_eq!(attack(ui.origin()), json!([]), "{page}");
    }
    let victim = ui.wait_for_result("victim");
    assert_eq!(victim["partial"], false, "{victim}");
    assert_eq!(std::fs::read_dir(&results).unwrap().count(), 1);
}
