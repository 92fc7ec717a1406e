//! A service that ends where no connection to it can be made. A program of its own: it uses up the descriptors of the process.

#![cfg(unix)]

use std::fs::File;
use std::net::TcpListener;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use ssdyno_serve::TcpService;

/// The listener is woken by no connection, which needs a descriptor here, and in another network namespace reaches
/// another program: its thread ends, and the address is free.
#[test]
fn a_service_ends_without_a_connection_to_it() {
    let held = Arc::new(());
    let of_service = Arc::clone(&held);
    let serve = move |_: &_| {
        let _held = &of_service;
        Ok(())
    };
    let service = TcpService::start("127.0.0.1:0", "test", 5, serve).unwrap();
    let address = service.address();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).unwrap();
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(files.len() < 64);
    drop(service);
    assert_eq!(Arc::strong_count(&held), 1, "its thread goes on");
    drop(files);
    setrlimit(Resource::Nofile, before).unwrap();
    TcpListener::bind(address).unwrap();
}
