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
    let mut cells = Vec::new();
    for (at, stack) in TOOLS.into_iter().enumerate() {
        let [of3, of5] = [printed.figure3, printed.figure5a]
            .map(|pair| if at == 0 { pair.spek } else { pair.iometer });
        let case = Case::new("seagate", stack, "long-random-write", plan.figure3.size_kib, 1);
        let note = match at {
            0 => {
                "S4-25, S4-26: the size of the disk's write cache and the order in which it writes back are assumed"
            }
            _ => "S4-25: the limits of the page cache are those of Linux 2.4.18",
        };
        let id = format!("S4/figure3/{stack}/iops");
        cells.push(cell(id, of3, measured.iops(&case), note));
        let size = plan.figure5.sizes_kib.last().copied().unwrap_or(64);
        let case = Case::new("seagate", stack, LOADS[0].1, size, 1);
        let note = match at {
            0 => "S4-28: the outermost tracks of the drive file come from figure 4",
            _ => {
                "S4-28: here copies and page handling overlap with the device, because read-ahead keeps the device busy"
            }
        };
        let id = format!("S4/figure5a/{stack}/megabytes_per_second");
        cells.push(cell(id, of5, measured.megabytes(&case), note));
    }
    let table = &printed.table3;
    for (tool, counts) in [("iometer", table.iometer), ("spek", table.spek)] {
        for (load, count) in QUICK.into_iter().zip(counts) {
            let case = Case::new("delay-100us", tool, load, 4, 1);
            let name = load.trim_start_matches("quick-").replace('-', "_");
            let note = match tool {
                "spek" => "S4-38: one sleep and one wake-up per request result from the model",
                _ => {
                    "S4-38: the mean of 2.845 switches more than SPEK over all loads is an input; hits and write-back result from the model"
                }
            };
            let id = format!("S4/table3/{name}/{tool}_switches");
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
        let note = "S4-38: an input, not a prediction";
        cells.push(cell(format!("S4/table3/{tool}_system_calls"), count, calls, note));
    }
    for (at, total) in printed.table4.totals.into_iter().enumerate() {
        let clients = at as u16 + 1;
        let [assumed, fitted] = ["assumed", "fitted"]
            .map(|variant| measured.megabytes(&client_case(plan, variant, clients)));
        let note = "S4-46: our model uses costs that are plausible for the time and not fitted; one client then saturates the target. \"as printed\" is the model whose three demands are fitted to these three rows";
        let id = format!("S4/table4/clients_{clients}/megabytes_per_second");
        let mut cell = cell(id, total, assumed, note);
        // The fitted model reproduces its three rows by construction, and it is no prediction. It
        // stands in the column of the printed model, and the assumed costs in ours.
        cell.as_printed_model = fitted.map(|mean| mean.mean);
        cells.push(cell);
    }
    cells.retain(|cell| selector.selects(&cell.id));
    cells
}
