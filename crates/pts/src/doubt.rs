//! Reasons why a constant figure need not be that of the steady state, and their remedies.

use ssdyno_block::Time;
use ssdyno_figures::{RunResult, Warning, WarningKind, seconds};

use crate::plan::PtsPlan;
use crate::result::{PtsPart, PtsResult, PtsStep};
use crate::rule::WINDOW_ROUNDS;

/// Length of a load by the specification.
const MINUTE: Time = Time::from_s(60);

/// Overwrites before the rounds by the specification.
const OVERWRITES: f64 = 2.0;

/// What a load of the tracked figure says against itself: a buffer, free blocks or credits set its rate.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    warning: Warning,
    /// Bytes that the load wrote.
    written_bytes: u64,
}

impl Doubt {
    /// The doubt about a `load` that wrote so many bytes.
    pub(crate) fn of(load: &RunResult, written_bytes: u64) -> Option<Doubt> {
        let found = load.warnings.iter().find(|one| one.kind.lives_on_stock());
        found.map(|warning| Doubt { warning: warning.clone(), written_bytes })
    }

    /// The doubt about the load `name`, as results have it.
    pub(crate) fn text(&self, name: &str) -> String {
        format!("in the last load {name}, {}", self.warning.message)
    }

    /// Whether preconditioning removes it: free blocks, or pages without data, took the writes.
    fn is_of_a_fresh_drive(&self) -> bool {
        self.warning.help.as_ref().is_some_and(|help| help.contains("precondition"))
    }

    /// The remedy, if it is neither a longer load nor preconditioning, for which a test has its own options.
    fn other_remedy(&self) -> Option<&str> {
        let is_other = self.warning.writes_least_bytes.is_none() && !self.is_of_a_fresh_drive();
        self.warning.help.as_deref().filter(|_| is_other)
    }
}

impl PtsPlan {
    /// Adds the warnings and notes about the figures as a whole, with the `doubts` about the last tracked load of each part. `slows`:
    /// the target may become slower when it is written over.
    pub(crate) fn remark(&self, result: &mut PtsResult, doubts: &[Option<Doubt>], slows: bool) {
        // A target that does not slow down need not be written over.
        let range = result.settings.active_range_bytes;
        let needed = if slows { range } else { 0 };
        for (part, doubt) in result.parts.iter_mut().zip(doubts) {
            part.tracked.doubt =
                part.tracked.doubt.take().or_else(|| self.short_rounds(part, needed));
            if !result.partial && !part.is_constant() {
                result.notes.push(format!(
                    "{}: no steady state within {} rounds; the figures cover the last five rounds (the specification permits such a report)",
                    part.name,
                    part.rounds.len()
                ));
            }
            if let Some(message) = self.too_little(part, [range, needed], doubt.as_ref()) {
                let help = self.remedy(part, needed, doubt.as_ref());
                let warning = Warning::new(WarningKind::NotExhausted, message);
                result.warnings.push(warning.with_help(help));
            }
        }
        let mut rounds = result.parts.iter().flat_map(|part| &part.rounds);
        if self.round < MINUTE && rounds.any(|round| !round.cells.is_empty()) {
            let text = format!(
                "each load ran for {}; the specification requires one minute",
                seconds(self.round.as_s_f64())
            );
            result.notes.push(text);
        }
    }

    /// The doubt about a part whose loads are shorter than the specification requires, and whose rounds wrote less than the
    /// `needed_bytes`: with loads of a minute, the rule of the specification is enough.
    fn short_rounds(&self, part: &PtsPart, needed_bytes: u64) -> Option<String> {
        let written = part.rounds_written_bytes();
        (self.round < MINUTE && part.is_constant() && written < needed_bytes).then(|| {
            "that may be too little to fill a fast cache and for cleaning to settle; a longer load may be much slower"
                .to_owned()
        })
    }

    /// The problem of a part whose rounds wrote less than the `needed` bytes of the active `range`, or about which there is a doubt.
    fn too_little(
        &self,
        part: &PtsPart,
        [range, needed]: [u64; 2],
        doubt: Option<&Doubt>,
    ) -> Option<String> {
        // A cache that is larger than what the rounds wrote may keep its rate for five
        // rounds. The rule of steady state cannot see that, so the result warns.
        // An interrupted test has fewer rounds than five, and these wrote less.
        let is_little = self.range_seconds(part, needed) > self.round.as_s_f64();
        if part.tracked.values.is_empty() || (!is_little && doubt.is_none()) {
            return None;
        }
        let prepared: u64 = part.steps.iter().map(|step| step.written_bytes).sum();
        let times = |bytes: u64| bytes as f64 / range as f64;
        let why = part.tracked.doubt.as_deref();
        Some(format!(
            "{}: the rounds wrote {:.2} times the active range (preconditioning {:.2} times){}",
            part.name,
            times(part.rounds_written_bytes().max(1)),
            times(prepared),
            why.map(|why| format!(": {why}")).unwrap_or_default()
        ))
    }

    /// How the test can do without the warning of [`too_little`](PtsPlan::too_little).
    fn remedy(&self, part: &PtsPart, needed_bytes: u64, doubt: Option<&Doubt>) -> String {
        let round_seconds = self.round.as_s_f64();
        let by_range = self.range_seconds(part, needed_bytes);
        let lacks = needed_bytes > 0 && self.precondition < OVERWRITES;
        let of_length = doubt.filter(|doubt| !lacks || !doubt.is_of_a_fresh_drive());
        let by_doubt = of_length.and_then(|doubt| {
            let bytes = doubt.warning.writes_least_bytes? as f64;
            let by_load = round_seconds * bytes / doubt.written_bytes.max(1) as f64;
            // It was too short: as long again is not enough, whatever the bytes say.
            Some(by_load.max(prepared_seconds(part, bytes)).max(2.0 * round_seconds))
        });
        let least_seconds = by_doubt.unwrap_or_default().max(by_range);
        let mut remedies = Vec::new();
        if least_seconds > round_seconds {
            remedies.push(format!("use rounds of at least {} (`--round`)", seconds(least_seconds)));
        }
        remedies.extend(doubt.and_then(Doubt::other_remedy).map(str::to_owned));
        if lacks {
            let text = "precondition as the specification requires (`--precondition 2`)";
            remedies.push(text.to_owned());
        }
        match remedies.is_empty() {
            true => "use longer rounds (`--round`)".to_owned(),
            false => remedies.join("; "),
        }
    }

    /// The length of rounds of which five write so many bytes. More than the rounds of `part` had, if these wrote less.
    fn range_seconds(&self, part: &PtsPart, bytes: u64) -> f64 {
        let written = part.rounds_written_bytes();
        let windows = part.rounds.len() as f64 / WINDOW_ROUNDS as f64;
        let by_rounds = self.round.as_s_f64() * bytes as f64 / written.max(1) as f64 * windows;
        if written >= bytes || windows == 0.0 {
            return by_rounds.min(self.round.as_s_f64());
        }
        // Five rounds write the range in the time in which the preconditioning wrote it, or later: random writes are not
        // faster than sequential ones, unless a buffer takes them.
        let cells = part.rounds.iter().flat_map(|round| &round.cells);
        let writes = cells.map(|cell| 1.0 - f64::from(cell.read_percent) / 100.0).sum::<f64>();
        let loads = (writes / windows).max(f64::MIN_POSITIVE);
        by_rounds.max(prepared_seconds(part, bytes as f64) / loads)
    }
}

/// The time in which the steps before the rounds wrote so many bytes.
fn prepared_seconds(part: &PtsPart, bytes: f64) -> f64 {
    let in_step = |step: &PtsStep| bytes * step.seconds / step.written_bytes.max(1) as f64;
    part.steps.iter().map(in_step).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Test;
    use crate::result::{PtsCell, Round, Tracked};

    fn plan(precondition: f64) -> PtsPlan {
        PtsPlan {
            target: "sim:x".into(),
            test: Test::Iops,
            round: Time::from_ms(10),
            rounds_max: 25,
            histogram: Time::ZERO,
            precondition,
            active_range_percent: 100.0,
            depth: 32,
            purge: true,
            seed: 1,
        }
    }

    /// Five rounds of one load of 10 ms that wrote 20 MB, after a step that wrote 1 GB in a second.
    fn part() -> PtsPart {
        let cell = PtsCell { written_bytes: 20_000_000, ..PtsCell::default() };
        let step = PtsStep {
            step: String::new(),
            detail: String::new(),
            seconds: 1.0,
            written_bytes: 1_000_000_000,
        };
        PtsPart {
            steps: vec![step],
            rounds: (1..=5).map(|round| Round { round, cells: vec![cell] }).collect(),
            tracked: Tracked { values: vec![1.0; 5], ..Tracked::default() },
            ..PtsPart::default()
        }
    }

    fn doubt(writes_least_bytes: Option<u64>, help: &str) -> Doubt {
        let warning = Warning::new(WarningKind::NotExhausted, "a buffer").with_help(help);
        let warning = Warning { writes_least_bytes, ..warning };
        Doubt { warning, written_bytes: 20_000_000 }
    }

    #[test]
    fn longer_rounds_write_what_the_range_and_the_doubt_need() {
        let advised = |needed_bytes, doubt: Option<Doubt>| {
            plan(2.0).remedy(&part(), needed_bytes, doubt.as_ref())
        };
        let rounds = |length: &str| format!("use rounds of at least {length} (`--round`)");
        // Five loads write 1 GB in 200 ms each, at the rate of the step.
        assert_eq!(advised(1_000_000_000, None), rounds("200.0 ms"));
        // One load alone writes what the doubt needs. The range of 100 MB is written.
        let buffer = |bytes| Some(doubt(Some(bytes), "write more"));
        assert_eq!(advised(100_000_000, buffer(300_000_000)), rounds("300.0 ms"));
        assert_eq!(advised(1_000_000_000, buffer(1_000)), rounds("200.0 ms"));
        // Never as short as the rounds were.
        assert_eq!(advised(100_000_000, buffer(1_000)), rounds("20.00 ms"));
        assert_eq!(advised(0, buffer(1_000)), rounds("20.00 ms"));
    }

    #[test]
    fn what_longer_rounds_do_not_remove_has_another_remedy() {
        let of = |precondition, doubt: Doubt| {
            plan(precondition).remedy(&part(), 100_000_000, Some(&doubt))
        };
        let advised = |precondition, help: &str| of(precondition, doubt(None, help));
        assert_eq!(advised(2.0, "write a larger range"), "write a larger range");
        let fresh = "fill the drive first (`ssdyno explain precondition`)";
        let precondition = "precondition as the specification requires (`--precondition 2`)";
        assert_eq!(advised(1.0, fresh), precondition);
        // Preconditioning does in less time what a very long load does.
        assert_eq!(of(1.0, doubt(Some(1 << 40), fresh)), precondition);
        assert_eq!(advised(2.0, fresh), "use longer rounds (`--round`)");
    }

    #[test]
    fn rounds_are_too_short_only_for_a_target_that_slows_down() {
        let little = |needed, part: &PtsPart| {
            plan(2.0).too_little(part, [1_000_000_000, needed], None).is_some()
        };
        assert!(little(1_000_000_000, &part()));
        assert!(!little(0, &part()));
        // No round was completed: nothing can be said of the rounds.
        let none = PtsPart { tracked: Tracked::default(), ..part() };
        assert!(!little(1_000_000_000, &none));
    }
}
