//! The page of `ssdyno ui` in Chromium: what a person sees and does there.

mod browser;
mod keyboard;
mod lost;
mod many_hosts;
mod origins;
mod paint;
mod pictures;
mod report;
mod restarted;
mod sizes;
mod speed;
mod tables;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::Place;
use browser::Browser;

/// How long anything may take that other tests beside this one slow down.
const PATIENCE: Duration = Duration::from_secs(60);

/// `ssdyno ui` in a process of its own, with results in `results`.
struct Ui {
    child: Child,
    /// With the token.
    address: String,
}

impl Ui {
    /// One at any port.
    fn new(place: &Place) -> Ui {
        Ui::at(place, "127.0.0.1:0")
    }

    fn at(place: &Place, listen: &str) -> Ui {
        let args = ["ui", "--no-open", "--results", "results", "--listen", listen];
        let mut child = place.command(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Ui { child, address: address.trim().to_owned() }
    }

    /// `http://HOST:PORT`.
    fn origin(&self) -> &str {
        self.address.split_once("/?token=").unwrap().0
    }

    fn host(&self) -> &str {
        self.origin().strip_prefix("http://").unwrap()
    }

    fn token(&self) -> &str {
        self.address.split_once("/?token=").unwrap().1
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let headers = format!("X-SSDyno-Token: {}\r\n", self.token());
        let (status, answer) = ask(self.host(), "POST", path, &headers, Some(body));
        assert_eq!(status, 200, "{path} {body}: {answer}");
        answer
    }

    fn get(&self, path: &str) -> Value {
        let headers = format!("X-SSDyno-Token: {}\r\n", self.token());
        let (status, answer) = ask(self.host(), "GET", path, &headers, None);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Starts a run called `name`.
    fn start(&self, name: &str, spec: &str) {
        self.post("/api/runs", &json!({ "toml": spec, "name": name }));
    }

    /// The list of results has one called `name`.
    fn wait_for_result(&self, name: &str) -> Value {
        let begin = Instant::now();
        loop {
            let list = self.get("/api/runs");
            let mut runs = list["runs"].as_array().unwrap().iter();
            if let Some(run) = runs.find(|run| run["folder"] == name && run["kind"] == "run") {
                return run.clone();
            }
            assert!(begin.elapsed() < PATIENCE, "no result {name}: {list}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends one request to `host`; gives the status, and the body as JSON or as text.
fn ask(host: &str, method: &str, path: &str, headers: &str, body: Option<&Value>) -> (u16, Value) {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let body = body.map_or(String::new(), Value::to_string);
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{method} {path}: no answer");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().unwrap())
    });
    let mut answer = Vec::new();
    stream.take(length.unwrap_or(u64::MAX)).read_to_end(&mut answer).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
