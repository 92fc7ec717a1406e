//! Printed numbers beside ours.

use ssdyno_profile::{ProfileOp, ProfileTest};
use ssdyno_session::Failure;

use super::data::{CLASSES, Plan, Printed};
use super::outcome::Outcome;
use crate::{FigureCell, Selector};

/// What is said of every cell of a simulated device.
const NOTE: &str = "the internal structure of the device is assumed (S2-39)";
/// What is said of every cell about our profile.
const OURS: &str = "--method adaptive at its default error of 5 %; not in the paper";
/// S2-22.
const IMPOSSIBLE: &str = "S2-22: the printed 9 is impossible: the median of a union lies between the medians of its parts (10, 10 and 17), so it is at least 9.5 before rounding";

struct Cells<'a> {
    selector: &'a Selector,
    all: Vec<FigureCell>,
}

impl Cells<'_> {
    fn push(&mut self, id: String, printed: f64, ours: Option<f64>, note: &str) {
        let id = format!("S2/{id}");
        // The drives of the paper cannot be built from their names (S2-39). Cells of simulated
        // drives are shown for comparison, and a difference is no failure of the program.
        if self.selector.selects(&id) {
            self.all.push(FigureCell::beside(id, printed, ours, note));
        }
    }

    /// What the paper does not have.
    fn of_ours(&mut self, id: String, ours: Option<f64>) {
        let before = self.all.len();
        self.push(format!("ours/{id}"), 0.0, ours, OURS);
        for cell in &mut self.all[before..] {
            (cell.printed, cell.printed_text) = (None, String::new());
        }
    }

    /// A number that follows from other printed ones.
    fn worked_out(&mut self, id: String, printed: f64, ours: f64, tolerance: f64, note: &str) {
        let before = self.all.len();
        self.push(format!("arithmetic/{id}"), printed, Some(ours), note);
        for cell in &mut self.all[before..] {
            // Arithmetic on printed numbers has no assumption, so it must match. A difference here
            // is a typing error in the data file or an error of the paper.
            (cell.tolerance, cell.expected_to_match) = (tolerance, true);
        }
    }
}

/// The selected cells; ours are `None` where the devices were not run.
pub(super) fn cells(
    selector: &Selector,
    plan: &Plan,
    printed: &Printed,
    outcome: Option<&Outcome>,
) -> Result<Vec<FigureCell>, Failure> {
    let mut cells = Cells { selector, all: Vec::new() };
    by_device(&mut cells, plan, printed, outcome)?;
    by_class(&mut cells, printed, outcome)?;
    ours(&mut cells, plan, outcome);
    arithmetic(&mut cells, plan, printed)?;
    Ok(cells.all)
}

fn by_device(
    cells: &mut Cells<'_>,
    plan: &Plan,
    printed: &Printed,
    outcome: Option<&Outcome>,
) -> Result<(), Failure> {
    let hours = |seconds: f64| seconds / 3600.0;
    for (index, device) in plan.devices.iter().enumerate() {
        let ours = outcome.and_then(|outcome| outcome.devices.get(index));
        let mut cell = |table: &str, numbers, row: &str, ours: Option<f64>| {
            let printed = Printed::row(numbers, row)?[index];
            cells.push(format!("{table}/{}/{row}", device.name), printed, ours, NOTE);
            Ok::<_, Failure>(())
        };
        let full = ours.map(|ours| &ours.full);
        let one = full.map(|full| hours(full.one_seconds));
        cell("table1", &printed.table1, "one_execution_hours", one)?;
        let total = full.map(|full| hours(full.total_seconds));
        cell("table1", &printed.table1, "total_hours", total)?;
        for (row, repeat) in [("one_minutes", 1), ("four_minutes", 4)] {
            let seconds = ours.and_then(|ours| ours.serra_seconds.get(&repeat).copied());
            cell("table5", &printed.table5, row, seconds.map(|s| s / 60.0))?;
        }
        for (word, op) in [("write", ProfileOp::Write), ("read", ProfileOp::Read)] {
            let ratios = ours.and_then(|ours| ours.ratios.get(&op).copied());
            let (measured, serra) = ratios.unzip();
            cell("table6", &printed.table6, &format!("{word}_measured"), measured)?;
            cell("table6", &printed.table6, &format!("{word}_serra"), serra)?;
        }
    }
    Ok(())
}

/// The columns of table 3, in its order.
const TESTS: [(&str, ProfileTest); 4] = [
    ("write", ProfileTest::SequentialWrite),
    ("random_write", ProfileTest::RandomWrite),
    ("read", ProfileTest::SequentialRead),
    ("random_read", ProfileTest::RandomRead),
];

fn by_class(
    cells: &mut Cells<'_>,
    printed: &Printed,
    outcome: Option<&Outcome>,
) -> Result<(), Failure> {
    for class in CLASSES {
        let numbers = Printed::row(&printed.table3, class)?;
        for ((column, test), number) in TESTS.into_iter().zip(numbers) {
            let note = if (class, column) == ("all", "write") { IMPOSSIBLE } else { NOTE };
            let ours = outcome.and_then(|outcome| outcome.curve_error(class, test));
            cells.push(format!("table3/{class}/{column}_percent"), *number, ours, note);
        }
        let numbers = Printed::row(&printed.table4, class)?;
        let columns = [ProfileOp::Write, ProfileOp::Read]
            .into_iter()
            .flat_map(|op| [1, 2, 4].map(|repeat| (op, repeat)));
        for ((op, repeat), number) in columns.zip(numbers) {
            let ours = outcome.and_then(|outcome| outcome.ratio_error(class, repeat, op));
            cells.push(format!("table4/{class}/{op}_{repeat}_percent"), *number, ours, NOTE);
        }
        if let Some(number) = printed.repetitions.get(class) {
            let ours = outcome.and_then(|outcome| outcome.repetitions(class));
            let note = "S2-25; the presets reach this number in tests shorter than 20 minutes; longer tests need fewer repetitions";
            cells.push(format!("text/{class}/repetitions"), *number, ours, note);
        }
    }
    Ok(())
}

/// Our profile beside SeRRa.
fn ours(cells: &mut Cells<'_>, plan: &Plan, outcome: Option<&Outcome>) {
    let devices = plan.devices.iter().enumerate().map(|(index, device)| {
        let beside = outcome.and_then(|outcome| outcome.devices.get(index)?.beside.clone());
        (device.name.as_str(), beside)
    });
    let all = std::iter::once(("all", outcome.and_then(Outcome::beside)));
    for (name, beside) in devices.chain(all) {
        let run = beside.is_some();
        for (figure, value) in beside.unwrap_or_default().cells() {
            cells.of_ours(format!("{name}/{figure}"), value.filter(|_| run));
        }
    }
}

/// What follows from the paper's own numbers (S2-29).
fn arithmetic(cells: &mut Cells<'_>, plan: &Plan, printed: &Printed) -> Result<(), Failure> {
    let total = Printed::row(&printed.table1, "total_hours")?;
    let sum = total.iter().sum::<f64>();
    cells.worked_out("table1_sum_hours".into(), 948.20, sum, 0.0001, "S2-19");
    for (word, printed_sum, overall) in [("one", 338.10, 168.0), ("four", 1317.96, 43.0)] {
        let minutes = Printed::row(&printed.table5, &format!("{word}_minutes"))?;
        let factors = Printed::row(&printed.table5, &format!("{word}_factor"))?;
        let ours = minutes.iter().sum::<f64>();
        let id = format!("table5_{word}_sum_minutes");
        cells.worked_out(id, printed_sum, ours, 0.0001, "S2-28, S2-29");
        let note = "S2-29: the ratio of the sums, truncated";
        let id = format!("table5_{word}_factor");
        cells.worked_out(id, overall, (sum * 60.0 / ours).floor(), 0.0001, note);
        for (index, device) in plan.devices.iter().enumerate() {
            let ours = total[index] * 60.0 / minutes[index];
            let id = format!("table5_{word}_factor_{}", device.name);
            // Cut off, of minutes that were rounded before: within a little more than one.
            // One unit of the printed factor, as a relative error: the factors were cut off, and 5
            // % more covers the rounded minutes.
            let tolerance = 1.05 / factors[index];
            cells.worked_out(id, factors[index], ours, tolerance, "S2-29: total / minutes");
        }
    }
    Ok(())
}
