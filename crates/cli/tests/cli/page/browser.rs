//! Chromium, driven through WebDriver (W3C Recommendation, 5 June 2018), which is HTTP and JSON, by ChromeDriver.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PATIENCE, ask};

/// Keys without a character (WebDriver, clause 17.4.2).
pub(super) const TAB: &str = "\u{E004}";
pub(super) const ENTER: &str = "\u{E007}";
pub(super) const CONTROL: char = '\u{E009}';

/// Where Debian has the browser.
const BINARY: &str = "/usr/bin/chromium";

/// Set to `required`, a browser that is missing is a failure.
const VARIABLE: &str = "SSDYNO_BROWSER";

/// A browser with one window and a profile of its own.
pub(super) struct Browser {
    driver: Child,
    /// A driver whose output nobody reads would hang.
    _output: BufReader<ChildStdout>,
    host: String,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// `None` where there is no browser, which is said.
    pub(super) fn new() -> Option<Browser> {
        Browser::with(&[])
    }

    /// One with further arguments of Chromium.
    pub(super) fn with(more: &[&str]) -> Option<Browser> {
        let mut command = Command::new("chromedriver");
        let driver = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else {
            let why = "there is no `chromedriver` (Debian's package: chromium-driver)";
            assert_ne!(std::env::var(VARIABLE).as_deref(), Ok("required"), "{why}");
            // Past what the harness captures: who reads a log must see what was not tested.
            let _ = writeln!(std::io::stderr(), "skipped: {why}");
            return None;
        };
        let mut output = BufReader::new(driver.stdout.take().unwrap());
        let mut said = String::new();
        let port = loop {
            said.clear();
            assert!(output.read_line(&mut said).unwrap() > 0, "chromedriver has ended");
            let port = said.trim_end().trim_end_matches('.').rsplit_once("on port ");
            if let Some((_, port)) = port.filter(|_| said.contains("successfully")) {
                break port.to_owned();
            }
        };
        let profile = TempDir::new().unwrap();
        let data = format!("--user-data-dir={}", profile.path().display());
        let mut args = vec!["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", &data];
        args.extend(["--no-first-run", "--disable-background-networking", "--disable-sync"]);
        args.extend(["--disable-component-update", "--disable-dev-shm-usage"]);
        args.extend(more);
        let mut options = json!({ "args": args });
        if Path::new(BINARY).is_file() {
            options["binary"] = json!(BINARY);
        }
        let wanted = json!({
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "performance": "ALL", "browser": "ALL" },
        });
        let host = format!("127.0.0.1:{port}");
        let mut browser =
            Browser { driver, _output: output, host, session: String::new(), _profile: profile };
        let asked = json!({ "capabilities": { "alwaysMatch": wanted } });
        let begun = browser.ask("POST", "/session", Some(&asked));
        browser.session = begun["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let (status, answer) = ask(&self.host, method, path, "", body);
        assert_eq!(status, 200, "{path} {}: {answer}", body.unwrap_or(&Value::Null));
        answer["value"].clone()
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{command}", self.session), Some(body))
    }

    /// Opens an address and waits until it is loaded.
    pub(super) fn open(&self, address: &str) {
        self.post("url", &json!({ "url": address }));
    }

    /// The value that a function with this body returns, or promises.
    pub(super) fn js(&self, body: &str) -> Value {
        self.post("execute/sync", &json!({ "script": body, "args": [] }))
    }

    /// As [`js`](Browser::js), of a value that is text.
    pub(super) fn text(&self, body: &str) -> String {
        let value = self.js(body);
        value.as_str().unwrap_or_else(|| panic!("{body}: {value}")).to_owned()
    }

    /// Waits until the expression is true. What throws, because the page is not yet there, is not yet true.
    pub(super) fn wait(&self, expression: &str) {
        self.wait_for(expression, PATIENCE);
    }

    pub(super) fn wait_for(&self, expression: &str, patience: Duration) {
        let begin = Instant::now();
        let script = format!("try {{ return Boolean({expression}); }} catch {{ return false; }}");
        while self.js(&script) != true {
            let seen = || self.text("return location.href + '\\n' + document.body.innerText");
            assert!(
                begin.elapsed() < patience,
                "not within {patience:?}: {expression}\n{}",
                seen()
            );
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// A command of Chromium's DevTools protocol.
    pub(super) fn devtools(&self, command: &str, params: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": params }))
    }

    /// Presses the keys of `text` one after the other.
    pub(super) fn press(&self, text: &str) {
        let keys = text.chars().flat_map(|key| [down(key), up(key)]);
        self.act(keys.collect());
    }

    /// Presses `key` while `held` is down.
    pub(super) fn chord(&self, held: char, key: char) {
        self.act(vec![down(held), down(key), up(key), up(held)]);
    }

    fn act(&self, keys: Vec<Value>) {
        self.post(
            "actions",
            &json!({ "actions": [{ "type": "key", "id": "keys", "actions": keys }] }),
        );
    }

    /// Takes the network from the tab, or gives it back.
    pub(super) fn offline(&self, is_offline: bool) {
        let none = json!({ "offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.devtools("Network.enable", &json!({}));
        self.devtools("Network.emulateNetworkConditions", &none);
    }

    /// Goes on in a new tab; gives the one before.
    pub(super) fn other_tab(&self) -> String {
        let before = self.ask("GET", &format!("/session/{}/window", self.session), None);
        let new = self.post("window/new", &json!({ "type": "tab" }));
        self.switch_to(new["handle"].as_str().unwrap());
        before.as_str().unwrap().to_owned()
    }

    pub(super) fn switch_to(&self, tab: &str) {
        self.post("window", &json!({ "handle": tab }));
    }

    /// The addresses that were asked for since the last call.
    pub(super) fn requests(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "performance" }));
        let messages = log.as_array().unwrap().iter().map(|entry| {
            serde_json::from_str::<Value>(entry["message"].as_str().unwrap()).unwrap()
        });
        let sent = messages.filter(|said| said["message"]["method"] == "Network.requestWillBeSent");
        sent.map(|said| said["message"]["params"]["request"]["url"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The errors in the console since the last call.
    pub(super) fn errors(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "browser" }));
        let severe = log.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    /// Roles and names of what assistive technology sees.
    pub(super) fn accessible(&self) -> Vec<(String, String)> {
        let tree = self.devtools("Accessibility.getFullAXTree", &json!({}));
        let nodes =
            tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] == false);
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().trim().to_owned();
        nodes.map(|node| (text(&node["role"]), text(&node["name"]))).collect()
    }
}

fn down(key: char) -> Value {
    json!({ "type": "keyDown", "value": key })
}

fn up(key: char) -> Value {
    json!({ "type": "keyUp", "value": key })
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends with its session. Nothing is asserted: a second panic would hide the first.
        let request = format!(
            "DELETE /session/{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.session, self.host
        );
        let _ = TcpStream::connect(&self.host).and_then(|mut stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(request.as_bytes())?;
            stream.read(&mut [0; 64])
        });
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
