//! Hard disks: drive files against service times that were measured on real drives.
//!
//! No paper of the five, but their disks stand on it: [`ssdyno_disk`] is held to what DiskSim reached on
//! the same traces. `--trace NAME=FILE --device NAME=drive.toml` adds a drive.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use ssdyno_block::{Rng, Time};
use ssdyno_disk::{DiskConfig, MeasuredRequest, measured_requests, replay, rms_ms};
use ssdyno_session::Failure;

use crate::chart::{Curve, Curves};
use crate::error::{nothing, parse, refused};
use crate::report::Row;
use crate::{
    Claim, ClaimState, Figure, FigureCell, FigureTable, KeepGoing, PapersOptions, PapersProgress,
    PapersReport, Selector, presets,
};

const PRINTED: &str = "papers/disks/printed.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    title: String,
    drives: Vec<PrintedDrive>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedDrive {
    name: String,
    preset: String,
    printed: String,
}

impl Printed {
    fn load() -> Result<Printed, Failure> {
        parse(PRINTED, include_str!("../../papers/disks/printed.toml"))
    }
}

/// The part that cells and claims are of: the second half, on which no drive file was fitted. The whole
/// trace, which DiskSim's figure is of, has the fitted half in it.
const HELD_OUT: usize = 2;

/// Replays of a trace, each with other angles of the platters. Simulated and measured angles have nothing to do
/// with each other: modulo a turn, the differences between simulated and measured service times of the three
/// drives are uniform. So a distance is one draw of many, and 5000 requests leave it a good part of chance.
const REPLAYS: u64 = 16;

/// A drive that is held against a trace.
struct Drive {
    name: String,
    config: DiskConfig,
    /// DiskSim's figure, as printed.
    printed: Option<String>,
}

/// The figures of one part of a trace, in ms, over [`REPLAYS`].
#[derive(Clone, Copy)]
struct Part {
    requests: usize,
    /// Median of the distances from the measured times, and the least and the greatest.
    rms: f64,
    rms_range: [f64; 2],
    /// Median distance between the simulated times of two replays: what chance alone makes of it, since both
    /// are of the same model.
    chance: f64,
    measured: f64,
    simulated: f64,
}

/// A drive with its trace.
struct Held {
    parts: [Part; 3],
    /// Service times in ms, rising: measured and simulated.
    sorted: [Vec<f64>; 2],
}

/// The drives with a title each.
pub(crate) fn selectable() -> Result<Vec<(String, String)>, Failure> {
    let printed = Printed::load()?;
    let title = |drive: &PrintedDrive| (format!("disks/{}", drive.name), drive.preset.clone());
    let drives = printed.drives.iter().map(title);
    Ok(std::iter::once(("disks".to_owned(), printed.title)).chain(drives).collect())
}

/// The names of the traces.
pub(crate) fn trace_names() -> Result<Vec<String>, Failure> {
    Ok(Printed::load()?.drives.into_iter().map(|drive| drive.name).collect())
}

/// Holds what `selector` names against its trace.
pub(crate) fn run(
    selector: &Selector,
    options: &PapersOptions,
    progress: &mut dyn FnMut(&PapersProgress) -> KeepGoing,
) -> Result<PapersReport, Failure> {
    let printed = Printed::load()?;
    let drives: Vec<Drive> = drives(&printed, options)?
        .into_iter()
        .filter(|drive| selector.reaches(&format!("disks/{}", drive.name)))
        .collect();
    if drives.is_empty() {
        return Err(nothing(selector, selectable()?));
    }
    let mut report = PapersReport { title: printed.title, ..PapersReport::default() };
    let mut rows = Vec::new();
    for (index, drive) in drives.iter().enumerate() {
        let (done, of) = (index as u64, drives.len() as u64);
        let running = vec![drive.name.clone()];
        if progress(&PapersProgress::part(done, of, running)) == KeepGoing::Stop {
            report.partial = true;
            break;
        }
        let held = match options.trace(&drive.name) {
            Some(path) => Some(drive.hold(&path, options)?),
            None => None,
        };
        report.cells.push(drive.cell(held.as_ref()));
        report.claims.extend(drive.claim(held.as_ref()));
        if let Some(held) = &held {
            rows.extend(drive.rows(held));
            report.figures.push(drive.figure(held));
        }
    }
    if !rows.is_empty() {
        let title = "Service times, measured and simulated";
        report.tables.push(FigureTable::of("disks/service_times", title, rows));
    }
    report.notes = vec![
        "RMS is the root mean square of the horizontal distance between the distributions of measured and simulated service times. The drive files were fitted to the first half of each trace; cells and claims use the second half. DiskSim's figure covers the whole trace. The row `whole` covers the same trace, but half of this trace was used for fitting."
            .to_owned(),
        format!(
            "A trace does not contain the angles of the platters, so RMS is the median of {REPLAYS} replays with different angles, with the range. `by chance` is the median distance between two of these replays of the same model."
        ),
    ];
    report.notes.extend(options.cut_short("with few requests, the distance is mostly chance"));
    Ok(report)
}

/// The drives of the program, each with the file that the user gave in its place, and the user's own.
fn drives(printed: &Printed, options: &PapersOptions) -> Result<Vec<Drive>, Failure> {
    let mut drives = Vec::new();
    for drive in &printed.drives {
        let config = match options.devices.get(&drive.name) {
            Some(path) => read_drive(&drive.name, path)?,
            None => presets::device(&drive.preset)?.read(DiskConfig::parse)?,
        };
        let printed = Some(drive.printed.clone());
        drives.push(Drive { name: drive.name.clone(), config, printed });
    }
    for (name, path) in &options.devices {
        if printed.drives.iter().all(|drive| drive.name != *name) {
            let config = read_drive(name, path)?;
            drives.push(Drive { name: name.clone(), config, printed: None });
        }
    }
    Ok(drives)
}

/// What the user's file has, or what is wrong with it.
fn read_drive(name: &str, path: &Path) -> Result<DiskConfig, Failure> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| refused(name, format!("{}: {error}", path.display())))?;
    DiskConfig::parse(&text).map_err(|error| refused(name, format!("{}: {error}", path.display())))
}

impl Drive {
    fn hold(&self, path: &Path, options: &PapersOptions) -> Result<Held, Failure> {
        let wrong = |problem: String| refused(&self.name, format!("{}: {problem}", path.display()));
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let mut text = String::new();
        let mut reader = ssdyno_workload::decompress(Box::new(file));
        reader.read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
        let mut requests = measured_requests(&text).map_err(|error| wrong(error.to_string()))?;
        if let Some(most) = options.requests {
            requests.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        if requests.len() < 2 {
            return Err(wrong("the trace has fewer than two requests".to_owned()));
        }
        // The drive files were fitted to the first half only. An error on the same data would be
        // too small, because the fit has seen its noise.
        let (first, second) = requests.split_at(requests.len() / 2);
        let simulate = |part: &[MeasuredRequest]| -> Result<Vec<Vec<Time>>, Failure> {
            let seeds = options.seed..options.seed.saturating_add(REPLAYS);
            let times = seeds.map(|seed| replay(&self.config, seed, &self.turned(part, seed)));
            times.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))
        };
        // The halves are simulated again and not cut out of the whole: a replay of the second half
        // starts with another state of the cache and another angle.
        let all = simulate(&requests)?;
        let parts = [
            Part::of(&requests, &all),
            Part::of(first, &simulate(first)?),
            Part::of(second, &simulate(second)?),
        ];
        let measured: Vec<Time> = requests.iter().map(|request| request.service).collect();
        Ok(Held { parts, sorted: [rising_ms(&measured), rising_ms(&all.concat())] })
    }

    /// The requests with gaps that are longer by up to a turn of the spindle, at random: another phase of a
    /// whole replay is not enough, for the first request that waits for its sector sets the phase of the rest.
    fn turned(&self, requests: &[MeasuredRequest], seed: u64) -> Vec<MeasuredRequest> {
        let turn_ps = Time::from_s_f64(60.0 / self.config.disk.rpm).as_ps();
        let mut rng = Rng::new(seed, "angles");
        let mut turned = requests.to_vec();
        for request in &mut turned {
            // A longer gap changes the angle at which the next request finds the platter. The trace
            // does not contain it, and every angle is equally likely.
            request.gap += Time::from_ps(rng.below(turn_ps));
        }
        turned
    }

    fn cell(&self, held: Option<&Held>) -> FigureCell {
        let printed: Option<f64> = self.printed.as_ref().and_then(|text| text.parse().ok());
        let ours = held.map(|held| held.parts[HELD_OUT].rms);
        let note = match (&self.printed, ours) {
            (_, None) => format!("not run: needs --trace {}=FILE or --trace-dir", self.name),
            (Some(_), _) => "second half of the trace, which was not used for fitting; smaller is better; printed: DiskSim's value for the whole trace".to_owned(),
            (None, _) => "no paper prints a figure for this drive".to_owned(),
        };
        FigureCell {
            id: format!("disks/{}/rms_ms", self.name),
            printed,
            printed_text: self.printed.clone().unwrap_or_default(),
            as_printed_model: None,
            ours,
            relative_error: ours.zip(printed).map(|(ours, printed)| ours / printed - 1.0),
            tolerance: 0.01,
            // A smaller distance than the printed one is better, so equality is not the goal. The
            // claim below compares with "at most".
            expected_to_match: false,
            note,
        }
    }

    /// Whether we are no farther from the drive than DiskSim is.
    fn claim(&self, held: Option<&Held>) -> Option<Claim> {
        let printed: f64 = self.printed.as_ref()?.parse().ok()?;
        let ours = held.map(|held| held.parts[HELD_OUT].rms);
        let holds = ours.map(|ours| ours <= printed);
        Some(Claim {
            id: format!("disks/claims/{}_as_near_as_disksim", self.name),
            text: format!(
                "{}: the simulated distribution is as close to the measurement as DiskSim's",
                self.name
            ),
            holds,
            state: holds.map(|holds| match holds {
                true => ClaimState::Holds,
                false => ClaimState::DoesNotHold,
            }),
            evidence: ours.map_or_else(
                || "not run".to_owned(),
                |ours| {
                    let [least, most] =
                        held.map_or([ours; 2], |held| held.parts[HELD_OUT].rms_range);
                    format!(
                        "{ours:.3} ms ({least:.3} to {most:.3} by the angles), DiskSim {printed} ms"
                    )
                },
            ),
            assumptions: Vec::new(),
        })
    }

    fn rows(&self, held: &Held) -> Vec<Row> {
        let names = ["whole", "first half", "second half"];
        let row = |(name, part): (&str, &Part)| {
            vec![
                ("drive", self.name.clone()),
                ("part of the trace", name.to_owned()),
                ("requests", part.requests.to_string()),
                ("RMS ms", format!("{:.3}", part.rms)),
                ("range", format!("{:.3} to {:.3}", part.rms_range[0], part.rms_range[1])),
                ("by chance", format!("{:.3}", part.chance)),
                ("mean ms", format!("{:.3}", part.measured)),
                ("simulated ms", format!("{:.3}", part.simulated)),
            ]
        };
        names.into_iter().zip(&held.parts).map(row).collect()
    }

    /// The two distributions.
    fn figure(&self, held: &Held) -> Figure {
        let title = format!("{}: service times, measured and simulated", self.name);
        let curve = |label: &str, sorted: &[f64], dashed| Curve {
            label: label.to_owned(),
            // The RMS is a horizontal distance between distributions, so the figure shows both as
            // quantiles. 200 steps are fine enough for a plot of 860 pixels.
            points: (0..=200).map(|step| quantile(sorted, f64::from(step) / 200.0)).collect(),
            dashed,
        };
        let [measured, simulated] = &held.sorted;
        let svg = Curves {
            title: &title,
            across: "service time (ms)",
            unit: "share of the requests",
            curves: vec![curve("measured", measured, false), curve("simulated", simulated, true)],
        };
        Figure { id: format!("disks/{}", self.name), svg: svg.draw(), title: title.clone() }
    }
}

/// The time that `share` of the requests take at most, and the share.
fn quantile(sorted: &[f64], share: f64) -> (f64, f64) {
    let index = (share * (sorted.len() - 1) as f64).round() as usize;
    (sorted[index], share)
}

fn rising_ms(times: &[Time]) -> Vec<f64> {
    let mut ms: Vec<f64> = times.iter().map(|time| time.as_s_f64() * 1e3).collect();
    ms.sort_by(f64::total_cmp);
    ms
}

impl Part {
    /// `simulated` has the service times of each phase.
    fn of(requests: &[MeasuredRequest], simulated: &[Vec<Time>]) -> Part {
        let measured: Vec<Time> = requests.iter().map(|request| request.service).collect();
        let mean = |times: &mut dyn Iterator<Item = &Time>| {
            let (mut sum, mut count) = (0.0, 0.0);
            for time in times {
                sum += time.as_s_f64() * 1e3;
                count += 1.0;
            }
            sum / f64::max(count, 1.0)
        };
        let rising = |mut distances: Vec<f64>| {
            distances.sort_by(f64::total_cmp);
            distances
        };
        let rms = rising(simulated.iter().map(|times| rms_ms(&measured, times)).collect());
        // Two replays of one model differ only by the angles. A distance to the drive of the same
        // size cannot be reduced by a better model.
        let chance = simulated.windows(2).map(|pair| rms_ms(&pair[0], &pair[1]));
        let chance = rising(chance.collect());
        Part {
            requests: requests.len(),
            // The median over the replays is not changed by one unlucky set of angles. The range
            // beside it shows how much the angles matter.
            rms: rms[rms.len() / 2],
            rms_range: [rms[0], rms[rms.len() - 1]],
            chance: chance[chance.len() / 2],
            measured: mean(&mut measured.iter()),
            simulated: mean(&mut simulated.iter().flatten()),
        }
    }
}

/// The drives that come with the program are there, with a figure each.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_have_files_and_figures() {
        let printed = Printed::load().unwrap();
        let all = drives(&printed, &PapersOptions::default()).unwrap();
        assert_eq!(all.len(), printed.drives.len());
        for drive in all {
            assert!(drive.printed.is_some_and(|text| text.parse::<f64>().is_ok()));
        }
    }
}
