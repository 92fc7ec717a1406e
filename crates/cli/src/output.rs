//! Standard output: text or one JSON object.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use ssdyno_session::{Failure, FailureKind};

use crate::diagnose::{ErrorObject, body, exit_code, render};

/// Shows `failure`; gives the exit code.
pub(crate) fn report(failure: &Failure, output: Output) -> ExitCode {
    if !output.json {
        tell(&render(failure));
    } else if !is_told() {
        // If not even this can be printed, the exit code still reports the failure.
        let _ = output.object(&ErrorObject { error: body(failure) });
    }
    ExitCode::from(exit_code(failure.kind))
}

/// Something is on standard output, or is being written there.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// An object of a verb is on standard output, whole, with what went wrong in it.
static TOLD: AtomicBool = AtomicBool::new(false);

/// How a verb speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// `--json`.
    pub(crate) json: bool,
}

impl Output {
    /// Prints `text()`, or with `--json` `value()`.
    pub(crate) fn either<T: Serialize>(
        self,
        text: impl FnOnce() -> String,
        value: impl FnOnce() -> T,
    ) -> Result<(), Failure> {
        if self.json { self.object(&value()) } else { self.text(&text()) }
    }

    /// Prints a JSON object.
    pub(crate) fn object<T: Serialize>(self, value: &T) -> Result<(), Failure> {
        let text = ssdyno_report::to_json(value)
            .map_err(|error| Failure::new(FailureKind::Failed, error.to_string()))?;
        self.text(&text).inspect(|()| TOLD.store(true, Ordering::SeqCst))
    }

    /// Prints a text as it is.
    pub(crate) fn text(self, text: &str) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        BEGUN.store(true, Ordering::SeqCst);
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(()),
            // The reader has seen enough, as with `| head`.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) => {
                let message = format!("cannot write to standard output: {error}");
                let help = "check where it leads; a full disk is the usual reason";
                Err(Failure::new(FailureKind::Unwritable, message).with_help(help))
            }
        }
    }
}

/// Whether an object on standard output already reports the failure.
fn is_told() -> bool {
    TOLD.load(Ordering::SeqCst)
}

/// Ends the program at once, from any thread. With `--json` standard output has one object even then.
pub(crate) fn abandon(failure: &Failure, output: Output) -> ! {
    let begun = || BEGUN.load(Ordering::SeqCst);
    let text = ssdyno_report::to_json(&ErrorObject { error: body(failure) });
    // Held to the end, so that nothing follows. A thread that prints at this moment may wait for a
    // reader.
    let mut out = (output.json && !begun()).then(|| std::io::stdout().lock());
    if let (Some(out), Ok(text), false) = (&mut out, text, begun()) {
        // If not even this can be printed, the exit code still reports the failure.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
    std::process::exit(i32::from(exit_code(failure.kind)))
}

/// How a verb ends once it has `told` what there is: as `failure` says, which then need not be told
/// again.
pub(crate) fn end(told: Result<(), Failure>, failure: Option<Failure>) -> Result<(), Failure> {
    match failure {
        Some(failure) => Err(failure),
        None => told,
    }
}

/// Prints `text` on standard error. If the reader has closed standard error (`2>&1 | head`), the
/// message is lost, and the exit code still reports the failure.
pub(crate) fn tell(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
