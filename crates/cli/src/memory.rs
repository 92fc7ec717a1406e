//! When no memory is to be had (`ulimit -v`, a limit of the group): a message instead of an abort.

#![expect(unsafe_code, reason = "an allocator is an unsafe trait; ours hands everything on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use ssdyno_block::units::Bytes;
use ssdyno_figures::Keep;
use ssdyno_record::memory::may_be_refused;
use ssdyno_session::{FailureKind, Goal};

use crate::diagnose::exit_code;

/// The system's allocator, but for what happens when it has nothing left.
pub(crate) struct OrEnd;

/// With `--json` the error is an object on standard output.
static AS_JSON: AtomicBool = AtomicBool::new(false);
/// Somebody is saying it already.
static ENDING: AtomicBool = AtomicBool::new(false);

const MESSAGE: &str = "out of memory: the system gives this program no more memory";
const HELP: &str = "raise its limit (`ulimit -v`, the memory limit of its group), keep less (with --keep summary, memory does not grow with the number of requests), or simulate a smaller device";

/// Bytes of a row in memory (S4-17).
const ROW_BYTES: u64 = 16;

/// Warns of a run whose rows will not fit: it ends when memory does, and the last word is not said
/// before.
pub(crate) fn look_ahead(keep: Keep, goal: Goal) {
    let Goal { requests: Some(requests), duration: None } = goal else { return };
    let needed = requests.saturating_mul(ROW_BYTES);
    let Some(available) = ssdyno_record::memory::available_bytes() else { return };
    if keep != Keep::Summary && needed > available {
        eprintln!(
            "warning: the rows of {requests} requests take {} of memory, but only {} are \
             available: the run ends when memory is used up; with --keep summary, memory does not \
             grow with the number of requests",
            Bytes(needed >> 20 << 20),
            Bytes(available >> 20 << 20),
        );
    }
}

/// Says how to tell that memory has run out.
pub(crate) fn tell_as_json(json: bool) {
    AS_JSON.store(json, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator with the very arguments that it came with, and what
// that returns is handed back unless it is null and nobody expects that, when the program ends.
unsafe impl GlobalAlloc for OrEnd {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        or_end(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: see above.
        or_end(unsafe { System.realloc(memory, layout, bytes) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: see above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && !may_be_refused() {
        end();
    }
    memory
}

/// Ends the program. Nothing here allocates; where that turns out wrong, the second call ends it at once.
#[cold]
fn end() -> ! {
    if ENDING.swap(true, Ordering::Relaxed) {
        std::process::abort();
    }
    crate::screen::leave();
    if AS_JSON.load(Ordering::Relaxed) {
        let rest = r#","file":null,"line":null,"column":null,"key":null}}"#;
        let _ = writeln!(Raw::Output, r#"{{"error":{{"message":"{MESSAGE}","help":"{HELP}"{rest}"#);
    } else {
        let _ = writeln!(Raw::Error, "error: {MESSAGE}\n |\n = help: {HELP}");
    }
    std::process::exit(i32::from(exit_code(FailureKind::Failed)))
}

/// A stream without a buffer, which would be made first.
enum Raw {
    Output,
    Error,
}

impl Write for Raw {
    #[cfg(unix)]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(match self {
            Raw::Output => rustix::io::write(rustix::stdio::stdout(), bytes)?,
            Raw::Error => rustix::io::write(rustix::stdio::stderr(), bytes)?,
        })
    }

    #[cfg(not(unix))]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Raw::Output => std::io::stdout().write(bytes),
            Raw::Error => std::io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
