//! The terminal while the live view has it, and how it is given back.
//!
//! However the program ends - done, failed, interrupted, in a panic - the terminal must be as it was:
//! the main screen, the cursor, echo. So the way back needs nothing but two statics, and may be
//! taken from any thread.

use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, TryLockError};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};

use super::view;

/// The live view has the terminal.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Held while something is drawn.
static DRAWING: Mutex<()> = Mutex::new(());

/// How long the way back waits for a drawing under way, on a terminal that may be stuck.
const PATIENCE: Duration = Duration::from_millis(200);

/// Alternate screen, cleared, without cursor (xterm control sequences, DECSET 1049 and 25).
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[?25l";
/// And back: colours, cursor, main screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal went away: its window was closed, its connection broke.
static GONE: AtomicBool = AtomicBool::new(false);

/// Standard error, which takes everything when there is no terminal behind it any more: the library panics
/// where it cannot show the cursor again, and the run must go on to its end.
struct Paper(Stderr);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(_) => {
                GONE.store(true, Ordering::SeqCst);
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // A failure shows with the next write.
        self.0.flush().or(Ok(()))
    }
}

/// Standard error as a place to draw.
pub(super) struct Canvas {
    terminal: Terminal<CrosstermBackend<BufWriter<Paper>>>,
}

/// Whether there is a terminal that can show the view, and a user who wants to see it.
pub(super) fn is_fit() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let dumb = dumb && !cfg!(windows);
    let large = || ratatui::crossterm::terminal::size().is_ok_and(|(w, h)| view::fits(w, h));
    !set("NO_COLOR") && !dumb && io::stderr().is_terminal() && mode::in_foreground() && large()
}

impl Canvas {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Canvas> {
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 14, Paper(io::stderr())));
        let terminal = Terminal::new(backend)?;
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                usual(panic);
            }));
        });
        mode::take();
        ACTIVE.store(true, Ordering::SeqCst);
        // From here on it is given back whatever happens. Cleared by hand: the library would ask
        // the terminal where the cursor is, and not every one answers.
        let canvas = Canvas { terminal };
        io::stderr().write_all(ENTER)?;
        Ok(canvas)
    }

    /// Draws, unless the terminal was given back meanwhile. False if that cannot be done.
    pub(super) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> bool {
        let Ok(_drawing) = DRAWING.lock() else { return false };
        ACTIVE.load(Ordering::SeqCst)
            && self.terminal.draw(render).is_ok()
            && !GONE.load(Ordering::SeqCst)
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        leave();
    }
}

/// True while the live view has the terminal: nothing else may be printed on it.
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::SeqCst)
}

/// Gives the terminal back, if the live view has it.
pub(crate) fn leave() {
    if !ACTIVE.swap(false, Ordering::SeqCst) {
        return;
    }
    // Waits for a drawing under way; a panic inside of it holds the lock and cannot be waited for.
    let began = Instant::now();
    let _drawing = loop {
        match DRAWING.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            lock => break lock.ok(),
        }
    };
    let mut err = io::stderr();
    // If this fails there is no terminal any more.
    let _ = err.write_all(LEAVE).and_then(|()| err.flush());
    mode::give_back();
}

/// How the terminal treats what is typed.
#[cfg(unix)]
mod mode {
    use std::io;
    use std::sync::{Mutex, PoisonError};

    use rustix::termios::{
        InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp,
        tcsetattr,
    };

    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    /// A special character that no key makes (termios(3), _POSIX_VDISABLE).
    const NO_KEY: u8 = 0;

    /// A job in the background would be stopped when it touches the terminal.
    pub(super) fn in_foreground() -> bool {
        tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
    }

    /// Typed keys are not shown. Ctrl-C stays a signal, so that it works whatever this program
    /// does; what would leave the view on the screen of another program (Ctrl-Z, Ctrl-\) or stop
    /// the drawing (Ctrl-S) does nothing.
    pub(super) fn take() {
        let Ok(before) = tcgetattr(io::stderr()) else { return };
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        quiet.input_modes.remove(InputModes::IXON);
        for key in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            quiet.special_codes[key] = NO_KEY;
        }
        if tcsetattr(io::stderr(), OptionalActions::Now, &quiet).is_ok() {
            BEFORE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(before);
        }
    }

    /// As before; keys typed meanwhile are discarded.
    pub(super) fn give_back() {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = before {
            // If this fails there is no terminal any more.
            let _ = tcsetattr(io::stderr(), OptionalActions::Flush, &before);
        }
    }
}

#[cfg(not(unix))]
mod mode {
    pub(super) fn in_foreground() -> bool {
        true
    }
    pub(super) fn take() {}
    pub(super) fn give_back() {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    /// Where the program under test is to panic; set for a call of this test program in a terminal.
    const PANIC: &str = "SSDYNO_TEST_PANIC_IN_VIEW";

    /// Not a test: what panics, where the environment says so.
    #[test]
    fn panics_in_the_view() {
        let Some(place) = std::env::var_os(PANIC) else { return };
        let mut canvas = Canvas::open().unwrap();
        canvas.draw(|_| assert!(place != "drawing", "while it is drawn"));
        let aside = std::thread::spawn(|| panic!("in another thread"));
        assert!(aside.join().is_err());
        // As the program ends where a thread of its own has failed.
        std::process::exit(1);
    }

    #[test]
    fn a_panic_gives_the_terminal_back() {
        let program = std::env::current_exe().unwrap();
        let shell = format!(
            "stty rows 24 cols 80; '{}' --exact screen::terminal::tests::panics_in_the_view \
             --nocapture; stty -a | grep -qE '[^-]echo ' && echo RESTORED",
            program.display()
        );
        for place in ["drawing", "aside"] {
            let mut script = Command::new("script");
            script.args(["-qec", &shell, "/dev/null"]).env(PANIC, place).env("TERM", "xterm");
            let Ok(output) = script.stdin(std::process::Stdio::null()).output() else {
                println!("skipped: there is no script(1) here");
                return;
            };
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            let enter = shown.find("\x1b[?1049h").unwrap_or_else(|| panic!("{place}: {shown:?}"));
            let leave = shown.find("\x1b[?25h\x1b[?1049l").unwrap_or_default();
            let message = shown.find("panicked at").unwrap_or_default();
            // The message comes when the main screen is back, where it can be read.
            assert!(enter < leave && leave < message, "{place}: {shown:?}");
            assert!(shown.contains("RESTORED"), "{place}: {shown:?}");
        }
    }
}
