//! The energy of a run in words, and its parts.

use ssdyno_figures::{Energy, RunResult, joules, seconds};

/// The energy of a run, if there is any: a device that is only a delay has no energy model, and a
/// run without time uses no energy.
pub(crate) fn energy_used(r: &RunResult) -> Option<Energy> {
    r.energy_joules.filter(|e| e.total > 0.0)
}

/// Mean power of `energy_joules` of a result, in watts; `None` of no time.
pub(crate) fn mean_power(r: &RunResult, energy_joules: f64) -> Option<f64> {
    let of_seconds = r.energy_seconds.unwrap_or(r.simulated_seconds);
    (of_seconds > 0.0).then(|| energy_joules / of_seconds)
}

/// What the work added, in words.
pub(crate) fn above_idle(e: &Energy) -> String {
    let side = if e.above_idle < 0.0 { "below" } else { "above" };
    format!("{} {side} idle", joules(e.above_idle.abs()))
}

/// Says that `energy` is of more than the recorded window, where it is by a hundredth or more.
pub(crate) fn settling(r: &RunResult, energy: &str) -> Option<String> {
    let whole = r.energy_seconds.filter(|whole| *whole > 1.01 * r.simulated_seconds)?;
    let more = seconds(whole - r.simulated_seconds);
    let whole = seconds(whole);
    // It need not be busy all the time: a page cache of the host writes back after seconds of sleep.
    let why = match r.requests {
        0 => "the whole run, because nothing was recorded".to_owned(),
        _ => format!("all work was finished {more} after the last completion"),
    };
    Some(format!("{energy} covers {whole}: {why}"))
}

/// The rows of the energy table: the whole, then its parts.
pub(crate) fn parts(e: &Energy) -> Vec<(&'static str, f64)> {
    let of_controller = [("flash", e.flash), ("cpu", e.cpu), ("dram", e.dram), ("bus", e.bus)];
    let mut all = vec![("total", e.total)];
    // A disk declares all of its parts, and has none of a controller of flash.
    if e.parts == 0.0 || of_controller.iter().any(|(_, joules)| *joules != 0.0) {
        all.extend(of_controller);
    }
    if e.parts != 0.0 {
        all.push(("parts", e.parts));
    }
    all
}
