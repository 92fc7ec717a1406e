//! The server of the page in a thread, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use ssdyno_cluster::{Hosts, WorkerConsent};
use ssdyno_session::Failure;
use ssdyno_web::{DeskOptions, PageServer};

/// Of the page and of its workers.
pub(crate) const VERSION: &str = "1.2.3";

/// A server in a thread of its own.
pub(crate) struct Running {
    pub(crate) host: String,
    pub(crate) token: String,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Running {
    pub(crate) fn new(results: &Path) -> Running {
        Running::allowing(results, WorkerConsent::default())
    }

    pub(crate) fn allowing(results: &Path, consent: WorkerConsent) -> Running {
        let hosts = Hosts { version: VERSION.to_owned(), ..Hosts::default() };
        let options = DeskOptions { results: results.to_owned(), consent, hosts };
        let server = PageServer::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let address = server.address();
        let (base, token) = address.split_once("/?token=").unwrap();
        let host = base.strip_prefix("http://").unwrap().to_owned();
        let (token, end) = (token.to_owned(), Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&end);
        let thread = std::thread::spawn(move || server.serve(move || ends.load(Ordering::Relaxed)));
        Running { host, token, end, thread: Some(thread) }
    }

    /// Sends a request; gives status and body.
    pub(crate) fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        let request = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn head(&self, request: &str) -> String {
        format!("{request} HTTP/1.1\r\nHost: {}\r\nX-SSDyno-Token: {}\r\n", self.host, self.token)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask(&self.head(&format!("GET {path}")), "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let head = self.head(&format!("POST {path}")) + "Content-Type: application/json\r\n";
        let (status, body) = self.ask(&head, &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    /// The events from now on: name and data.
    pub(crate) fn events(&self) -> impl Iterator<Item = (String, Value)> + use<> {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all((self.head("GET /events") + "\r\n").as_bytes()).unwrap();
        let mut name = String::new();
        BufReader::new(stream).lines().map_while(Result::ok).filter_map(move |line| {
            if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut name);
            }
            let data = line.strip_prefix("data: ")?;
            Some((name.clone(), serde_json::from_str(data).unwrap()))
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}
