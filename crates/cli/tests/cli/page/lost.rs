//! The connection is cut and comes back, and the server hangs and goes on, in the middle of a run.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::{Browser, PATIENCE, Ui};
use crate::common::Place;

/// Arrivals a second.
const RATE: f64 = 500.0;

/// Carries the connections of the browser to a server, and cuts them.
struct Proxy {
    address: String,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn new(host: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (is_cut, open) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (cut, streams, host) = (Arc::clone(&is_cut), Arc::clone(&open), host.to_owned());
        // It ends with the tests.
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(&host) else { continue };
                let mut streams = streams.lock().unwrap();
                if cut.load(Ordering::Relaxed) {
                    continue;
                }
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                streams.extend([near, far]);
            }
        });
        Proxy { address, is_cut, open }
    }

    fn cut(&self) {
        let mut open = self.open.lock().unwrap();
        self.is_cut.store(true, Ordering::Relaxed);
        open.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }

    fn mend(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

const DRAWN: &str =
    "return import(`${location.origin}/assets/live.js`).then((live) => live.drawn().points)";

/// The points that the page draws, which must follow one another without gap or overlap and hold all arrivals; gives
/// where they end.
fn end_of(points: &Value) -> f64 {
    let points = points.as_array().unwrap();
    let time = |point: &Value, key: &str| point[key].as_f64().unwrap();
    for two in points.windows(2) {
        let (before, after) = (time(&two[0], "to"), time(&two[1], "from"));
        assert!((before - after).abs() < 1e-6, "{before} s, then {after} s");
    }
    let (from, to) = (time(&points[0], "from"), time(&points[points.len() - 1], "to"));
    let requests: u64 = points.iter().map(|point| point["hosts"][0][1].as_u64().unwrap_or(0)).sum();
    let expected = RATE * (to - from);
    assert!(
        (requests as f64 - expected).abs() < 10.0 + 0.01 * expected,
        "{requests} requests, {expected} arrivals from {from} to {to} s"
    );
    to
}

#[test]
fn a_lost_connection_is_told_and_costs_no_point() {
    let place = Place::new();
    let ui = Ui::new(&place);
    let proxy = Proxy::new(ui.host());
    let through = format!("--proxy-server=http://{}", proxy.address);
    let Some(browser) = Browser::with(&[&through, "--proxy-bypass-list=<-loopback>"]) else {
        return;
    };
    browser.open(&ui.address);
    browser.wait("!location.search && document.querySelector('#no-run:not([hidden])')");
    let load =
        format!("set = [\"workload.arrivals.kind=fixed\", \"workload.arrivals.rate={RATE}\"]");
    ui.start(
        "steady",
        &format!("target = \"null:\"\nworkload = \"randread\"\nfor = \"18s\"\n{load}\n"),
    );
    browser.wait("document.querySelector('#run-phase').innerText === 'under load'");
    std::thread::sleep(Duration::from_secs(1));
    let before = end_of(&browser.js(DRAWN));

    let lost = "document.querySelector('#banner').innerText.includes('Connection lost at')
        && document.querySelector('#connection').innerText === 'not connected'
        && document.querySelector('#run-phase').innerText === 'not known: no connection'";
    let back = "document.querySelector('#banner').hidden
        && document.querySelector('#connection').innerText === 'connected'
        && document.querySelector('#run-phase').innerText === 'under load'";
    proxy.cut();
    browser.wait(lost);
    std::thread::sleep(Duration::from_millis(1500));
    proxy.mend();
    browser.wait(back);
    std::thread::sleep(Duration::from_millis(500));
    let after = end_of(&browser.js(DRAWN));
    assert!(after > before + 1.5, "{before} s, {after} s");

    // A server that hangs, or a network that swallows everything, ends no connection.
    ui.signal(Signal::STOP);
    browser.wait(lost);
    ui.signal(Signal::CONT);
    browser.wait(back);

    browser.wait_for("document.querySelector('#run-phase').innerText === 'ended'", 2 * PATIENCE);
    let figures = "Object.fromEntries([...document.querySelectorAll('#figures > div')]
        .map((each) => [each.children[0].textContent, [each.children[1].textContent, each.children[2].textContent]]))";
    browser.wait(&format!("({figures}).IOPS[1] === 'of the result'"));
    let shown = browser.js(&format!("return {figures}"));
    let told = browser.js(
        "return Promise.all([import(`${location.origin}/assets/format.js`), fetch('/runs/steady/result.json')])
           .then(async ([format, answer]) => {
             const { iops, throughput_bytes_per_second: bytes, latency_ns: latency, requests, errors } = await answer.json();
             return {
               IOPS: [format.rate(iops), 'of the result'],
               Throughput: [format.bytesPerSecond(bytes), 'of the result'],
               p50: [format.nanoseconds(latency.p50), 'whole run'],
               p99: [format.nanoseconds(latency.p99), 'whole run'],
               Errors: [format.count(errors), `of ${format.count(requests)} requests`],
             };
           })",
    );
    for (name, figure) in told.as_object().unwrap() {
        assert_eq!(&shown[name], figure, "{name}");
    }
    // A page that stayed open shows the same as a page opened now.
    let points = browser.js(DRAWN);
    end_of(&points);
    browser.open(&format!("{}/", ui.origin()));
    browser.wait("document.querySelector('#run-result a')");
    assert_eq!(browser.js(DRAWN), points);
}
