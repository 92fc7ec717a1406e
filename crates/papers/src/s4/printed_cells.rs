//! Printed numbers beside simulated ones.

use super::data::{Case, LOADS, Plan, Printed, QUICK, TOOLS};
use super::figures::client_case;
use super::simulate::Measured;
use crate::mean::Mean;
use crate::{FigureCell, Selector};

fn cell(id: String, printed: f64, ours: Option<Mean>, note: &str) -> FigureCell {
    FigureCell::beside(id, printed, ours.map(|mean| mean.mean), note)
}

/// The selected ones, as far as they were run.
pub(super) fn cells(
    selector: &Selector,
    plan: &Plan,
    printed: &Printed,
    measured: &Measured,
) -> Vec<FigureCell> {
    let note = |of: &str| printed.notes.get(of).map_or("", String::as_str);
    let mut cells = Vec::new();
    for (at, stack) in TOOLS.into_iter().enumerate() {
        let [of3, of5] = [printed.figure3, printed.figure5a]
            .map(|pair| if at == 0 { pair.spek } else { pair.iometer });
        let case = Case::new("seagate", stack, "long-random-write", plan.figure3.size_kib, 1);
        let id = format!("S4/figure3/{stack}/iops");
        cells.push(cell(id, of3, measured.iops(&case), note(&format!("figure3/{stack}"))));
        let size = plan.figure5.sizes_kib.last().copied().unwrap_or(64);
        let case = Case::new("seagate", stack, LOADS[0].1, size, 1);
        let id = format!("S4/figure5a/{stack}/megabytes_per_second");
        let note = note(&format!("figure5a/{stack}"));
        cells.push(cell(id, of5, measured.megabytes(&case), note));
    }
    let table = &printed.table3;
    for (tool, counts) in [("iometer", table.iometer), ("spek", table.spek)] {
        for (load, count) in QUICK.into_iter().zip(counts) {
            let case = Case::new("delay-100us", tool, load, 4, 1);
            let name = load.trim_start_matches("quick-").replace('-', "_");
            let id = format!("S4/table3/{name}/{tool}_switches");
            let note = note(&format!("table3/{tool}"));
            let mut cell = cell(id, count, measured.switches(&case), note);
            // S4-38: about two switches per request follow from one sleep and one wake-up, without
            // an assumed value. IoMeter's threads are not described, so its number is an input.
            cell.expected_to_match = tool == "spek" && cell.ours.is_some();
            cells.push(cell);
        }
        let case = Case::new("delay-100us", tool, QUICK[2], 4, 1);
        let calls = measured.host(&case, |host| host.system_calls_per_request.unwrap_or(f64::NAN));
        let count = match tool {
            "spek" => table.spek_system_calls,
            _ => table.iometer_system_calls,
        };
        let id = format!("S4/table3/{tool}_system_calls");
        cells.push(cell(id, count, calls, note("table3/system_calls")));
    }
    for (at, total) in printed.table4.totals.into_iter().enumerate() {
        let clients = at as u16 + 1;
        let [assumed, fitted] = ["assumed", "fitted"]
            .map(|variant| measured.megabytes(&client_case(plan, variant, clients)));
        let id = format!("S4/table4/clients_{clients}/megabytes_per_second");
        let mut cell = cell(id, total, assumed, note("table4"));
        // The fitted model reproduces its three rows by construction, and it is no prediction. It
        // stands in the column of the printed model, and the assumed costs in ours.
        cell.as_printed_model = fitted.map(|mean| mean.mean);
        cells.push(cell);
    }
    cells.retain(|cell| selector.selects(&cell.id));
    cells
}
