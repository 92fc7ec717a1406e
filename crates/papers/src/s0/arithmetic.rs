//! Numbers in the text, recalculated (S0-45 … S0-48).

use ssdyno_controller_ring::TlpLink;
use ssdyno_session::Failure;

use super::data::Printed;
use super::simulate::card;
use crate::error::defect;
use crate::printed::arithmetic;
use crate::{FigureCell, Selector};

/// Pages of 4 KiB that the link can carry in a second: bare, and with packets around them (S0-48).
pub(super) fn link_bounds() -> Result<(f64, f64), Failure> {
    let config = card()?;
    let link = TlpLink::new(&config.link)
        .map_err(|error| defect("presets/devices/zc706-ring.toml", error))?;
    // S0-48: 2.0 GB/s divided by 4 KiB is the bound without packet overhead. With payloads of 128
    // bytes and their headers, the second bound follows, which no result may exceed.
    let packed = 1.0 / link.write_time(0, 4096).as_s_f64();
    let bytes = link.write_traffic(0, 4096).to_host.bytes;
    Ok((packed * bytes as f64 / 4096.0, packed))
}

/// What the formula called `name` gives.
fn value(name: &str) -> Result<Option<f64>, Failure> {
    Ok(Some(match name {
        // S0-47: SATA revision 3 has 6 Gbit/s with 8b/10b coding, so 4.8 Gbit/s or 600 MB/s of data
        // remain. PCIe Gen2 uses the same coding for each of its four lanes.
        "sata_megabytes_per_second" => 6e9 * 8.0 / 10.0 / 8.0 / 1e6,
        "pcie_gigabytes_per_second" => 4.0 * 5e9 * 8.0 / 10.0 / 8.0 / 1e9,
        // "Tens of milliseconds": ten at least.
        "hdd_iops" => 1.0 / 10e-3,
        "ssd_iops" => link_bounds()?.0,
        _ => return Ok(None),
    }))
}

/// The selected cells.
pub(super) fn cells(printed: &Printed, selector: &Selector) -> Result<Vec<FigureCell>, Failure> {
    arithmetic("S0", &printed.cells, selector, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::assert_worked_out;

    #[test]
    fn numbers_of_the_text_are_as_expected() {
        let printed = Printed::load().unwrap();
        let cells = cells(&printed, &"S0/arithmetic".parse().unwrap()).unwrap();
        assert_worked_out(&printed.cells, &cells);
        for cell in cells {
            assert_eq!(cell.matches(), cell.expected_to_match, "{cell:?}");
        }
        let (raw, packed) = link_bounds().unwrap();
        assert_eq!((raw.floor(), packed.round()), (488_281.0, 411_184.0));
    }
}
