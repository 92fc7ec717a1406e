//! Numbers of the text, worked out again (S0-45 … S0-48).

use ssdyno_device::ring::TlpLink;

use super::data::Printed;
use super::simulate::card;
use crate::{Cell, PaperError, Selector};

/// Pages of 4 KiB that the link can carry in a second: bare, and with packets around them (S0-48).
pub(super) fn link_bounds() -> Result<(f64, f64), PaperError> {
    let config = card()?;
    let link = TlpLink::new(&config.link).map_err(|error| PaperError::Defect {
        file: "presets/devices/zc706-ring.toml".to_owned(),
        problem: error.to_string(),
    })?;
    let packed = 1.0 / link.write_time(0, 4096).as_s_f64();
    let bytes = link.write_traffic(0, 4096).to_host.bytes;
    Ok((packed * bytes as f64 / 4096.0, packed))
}

/// What the formula called `name` gives.
fn value(name: &str) -> Result<Option<f64>, PaperError> {
    Ok(Some(match name {
        "sata_megabytes_per_second" => 6e9 * 8.0 / 10.0 / 8.0 / 1e6,
        "pcie_gigabytes_per_second" => 4.0 * 5e9 * 8.0 / 10.0 / 8.0 / 1e9,
        // "Tens of milliseconds": ten at least.
        "hdd_iops" => 1.0 / 10e-3,
        "ssd_iops" => link_bounds()?.0,
        _ => return Ok(None),
    }))
}

/// The selected cells.
pub(super) fn cells(printed: &Printed, selector: &Selector) -> Result<Vec<Cell>, PaperError> {
    let mut cells = Vec::new();
    for cell in &printed.cells {
        let id = format!("S0/arithmetic/{}", cell.name);
        if !selector.selects(&id) {
            continue;
        }
        let defect = |problem: String| PaperError::Defect {
            file: "papers/s0/printed.toml".to_owned(),
            problem,
        };
        let number: f64 = cell
            .printed
            .parse()
            .map_err(|_| defect(format!("{} prints no number: {}", cell.name, cell.printed)))?;
        let ours = value(&cell.name)?.ok_or_else(|| defect(format!("no formula {}", cell.name)))?;
        cells.push(Cell {
            id,
            printed: number,
            printed_text: cell.printed.clone(),
            as_printed_model: None,
            ours: Some(ours),
            relative_error: Some((ours - number) / number),
            tolerance: 0.01,
            expected_to_match: cell.matches,
            note: format!("{}: {}", cell.requirement, cell.note),
        });
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_text_are_as_expected() {
        let printed = Printed::load().unwrap();
        let cells = cells(&printed, &"S0/arithmetic".parse().unwrap()).unwrap();
        assert_eq!(cells.len(), printed.cells.len());
        for cell in cells {
            assert_eq!(cell.matches(), cell.expected_to_match, "{cell:?}");
        }
        let (raw, packed) = link_bounds().unwrap();
        assert_eq!((raw.floor(), packed.round()), (488_281.0, 411_184.0));
    }
}
