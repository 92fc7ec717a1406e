//! Runs that are stopped while a network fails.

use std::time::{Duration, Instant};

use ssdyno_figures::KeepGoing;

use crate::common::{at, spec};
use crate::failures::{CUT, OPEN, Remote};

/// A host whose connection is cut at the moment of the stop, and is back soon after, is told again.
#[test]
fn a_stop_that_did_not_arrive_is_sent_again() {
    let remote = Remote::new();
    let hosts = at(std::slice::from_ref(&remote.network.address));
    let mut stopped: Option<Instant> = None;
    std::thread::scope(|scope| {
        let measured =
            ssdyno_cluster::run_on_hosts(&hosts, &spec("null:", 30.0), &mut |progress| {
                if progress.merged().completed > 0 && stopped.is_none() {
                    stopped = Some(Instant::now());
                    remote.network.set(CUT);
                    // Until the proxy has closed the connection, the message could still get through.
                    std::thread::sleep(Duration::from_millis(50));
                    scope.spawn(|| {
                        std::thread::sleep(Duration::from_millis(150));
                        remote.network.set(OPEN);
                    });
                }
                if stopped.is_some() { KeepGoing::Stop } else { KeepGoing::Continue }
            });
        let took = stopped.unwrap().elapsed();
        // Half of the run is far above the second that the connection needs, on a loaded machine too.
        assert!(took < Duration::from_secs(15), "{took:?}: {:?}", measured.map(|one| one.failure));
    });
}
