//! The server of the page.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use ssdyno_session::Failure;

use crate::desk::{Desk, DeskOptions};
use crate::folders::FolderList;
use crate::guard::Guard;
use crate::routes::{Page, router};

/// How often it is asked whether to end.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// How long connections may take to end: an event stream has no end of its own.
const FAREWELL: Duration = Duration::from_millis(300);

/// A server that has its address.
#[derive(Debug)]
pub struct PageServer {
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    desk: Arc<Desk>,
}

impl PageServer {
    /// Listens at `address`; with port 0 at one that is free.
    ///
    /// # Errors
    /// The address is taken, or not one of loopback: what goes over the network is not encrypted.
    pub fn bind(address: SocketAddr, options: DeskOptions) -> Result<PageServer, Failure> {
        if !address.ip().is_loopback() {
            let message = format!(
                "{address} can be reached from other machines, and the page is not encrypted"
            );
            return Err(Failure::usage(message)
                .with_help("listen on 127.0.0.1 or [::1], and reach it through ssh -L"));
        }
        let taken = |error| {
            Failure::usage(format!("cannot listen at {address}: {error}"))
                .with_help("use another port; 0 selects a free port")
        };
        let listener = TcpListener::bind(address).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let guard = Guard::new(address)?;
        Ok(PageServer { listener, address, guard, desk: Arc::new(Desk::new(options)) })
    }

    /// The address for a browser, with the session's token, which admits everybody who has it.
    pub fn address(&self) -> String {
        format!("http://{}/?token={}", self.address, self.guard.token)
    }

    /// The session's token, which `GET /metrics` takes as a bearer token.
    pub fn token(&self) -> &str {
        &self.guard.token
    }

    /// Answers until `ends` is true. A run that goes on then is stopped in order, and its files are written.
    ///
    /// # Errors
    /// There are no threads for it.
    pub fn serve(self, ends: impl Fn() -> bool) -> Result<(), Failure> {
        let failed =
            |error: std::io::Error| Failure::failed(format!("the page cannot be served: {error}"));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let desk = Arc::clone(&self.desk);
        let page =
            Page { desk: self.desk, guard: self.guard, folders: Arc::new(FolderList::default()) };
        let served = runtime.block_on(async {
            self.listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let mut serving =
                tokio::spawn(async move { axum::serve(listener, router(page)).await });
            loop {
                tokio::select! {
                    ended = &mut serving => return ended.map_err(std::io::Error::other)?,
                    () = tokio::time::sleep(ASK_EVERY) => {}
                }
                if ends() {
                    // The run is stopped and its files are written while the server
                    // still answers, so viewers see its end.
                    let ended = Arc::clone(&desk);
                    let _ = tokio::task::spawn_blocking(move || ended.end()).await;
                    tokio::time::sleep(FAREWELL).await;
                    serving.abort();
                    return Ok(());
                }
            }
        });
        // A run may have been started in the last moments. It is ended here as well, so that no
        // thread writes after the process has said goodbye.
        desk.end();
        runtime.shutdown_timeout(FAREWELL);
        served.map_err(failed)
    }
}
