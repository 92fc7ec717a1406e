//! What a device costs, by its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ssdyno_block::units::Bytes;
use toml::{Table, Value};

/// The name of the cost of a device among the figures.
pub(crate) const COST: &str = "cost";

/// The name of the cost of a GiB that the host can use.
pub(crate) const COST_PER_GIB: &str = "cost_per_gib";

/// The figures that follow from the design alone, without a run.
pub(crate) const COSTS: [&str; 2] = [COST, COST_PER_GIB];

const GIB: f64 = (1u64 << 30) as f64;

/// Prices of the parts of a device. The currency is the user's choice. The defaults are US dollars of 2024, all
/// *assumed*: they are near public spot prices, and only useful to compare designs with each other.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CostModel {
    /// A GiB of raw flash, SLC. Default: 0.30.
    pub slc_per_gib: f64,
    /// A GiB of raw flash, MLC. Default: 0.12.
    pub mlc_per_gib: f64,
    /// A GiB of raw flash, TLC. Default: 0.06.
    pub tlc_per_gib: f64,
    /// A GiB of raw flash, QLC. Default: 0.045.
    pub qlc_per_gib: f64,
    /// Additional cost of each die: test and package. Default: 0.25.
    pub per_die: f64,
    /// A channel of the controller, with its pins. Default: 0.6.
    pub per_channel: f64,
    /// A core of the controller. Default: 0.8.
    pub per_core: f64,
    /// The rest of the controller and of the board. Default: 4.
    pub controller: f64,
    /// A GiB of DRAM for the write buffer. Default: 3.
    pub dram_per_gib: f64,
    /// A complete device other than an SSD: a disk, a volume. Default: none, so that a design with this device has no
    /// cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_device: Option<f64>,
}

impl Default for CostModel {
    fn default() -> CostModel {
        CostModel {
            slc_per_gib: 0.30,
            mlc_per_gib: 0.12,
            tlc_per_gib: 0.06,
            qlc_per_gib: 0.045,
            per_die: 0.25,
            per_channel: 0.6,
            per_core: 0.8,
            controller: 4.0,
            dram_per_gib: 3.0,
            other_device: None,
        }
    }
}

impl CostModel {
    /// The first price that is no price.
    pub(crate) fn wrong_key(&self) -> Option<String> {
        // A negative or infinite price would put designs on the front for no reason. The
        // key in the message is the one of the plan. An infinite price is null in JSON.
        let model = serde_json::to_value(self).ok()?;
        let is_price = |price: &serde_json::Value| price.as_f64().is_some_and(|one| one >= 0.0);
        let mut prices = model.as_object()?.iter();
        prices.find(|(_, price)| !is_price(price)).map(|(key, _)| format!("cost.{key}"))
    }

    /// The costs of the device in `file`, a device file with every key written out, by the names of their figures.
    pub(crate) fn figures(&self, file: Option<&Table>) -> Vec<(&'static str, f64)> {
        let cost = file.and_then(|file| self.of(file)).or(self.other_device);
        // The raw flash decides what a device costs; what is left beside the over-provisioning is what the user
        // gets for it.
        let usable = file.and_then(usable_gib);
        let per_gib = cost.zip(usable).map(|(cost, gib)| (COST_PER_GIB, cost / gib));
        cost.map(|cost| (COST, cost)).into_iter().chain(per_gib).collect()
    }

    /// The cost of the device in `file`, a device file with every key written out.
    pub fn of(&self, file: &Table) -> Option<f64> {
        let Some(flash) = file.get("flash").and_then(Value::as_table) else {
            // The file has every key written out. A missing one means another kind of device, and
            // then there is no cost instead of a cost of 0.
            return self.other_device;
        };
        let [channels, dies, gib] = raw(flash)?;
        let per_gib = match flash.get("cell").and_then(Value::as_str) {
            Some("slc") => self.slc_per_gib,
            Some("mlc") => self.mlc_per_gib,
            Some("qlc") => self.qlc_per_gib,
            // An unknown kind of cell is priced as TLC, the most common one. A new name of a cell
            // must not remove the cost of a whole sweep.
            _ => self.tlc_per_gib,
        };
        let inner = |table: &str, key: &str| file.get(table)?.as_table()?.get(key);
        let cores = inner("controller", "cores").and_then(Value::as_integer).unwrap_or(1) as f64;
        let dram = inner("buffer", "size").and_then(bytes).unwrap_or(0.0) / GIB;
        Some(
            gib * per_gib
                + dies * self.per_die
                + channels * self.per_channel
                + cores * self.per_core
                + self.controller
                + dram * self.dram_per_gib,
        )
    }
}

fn bytes(value: &Value) -> Option<f64> {
    value.as_str()?.parse().ok().map(|bytes: Bytes| bytes.0 as f64)
}

/// Channels, dies and GiB of raw flash.
fn raw(flash: &Table) -> Option<[f64; 3]> {
    let count = |key: &str| flash.get(key).and_then(Value::as_integer).map(|n| n as f64);
    let (channels, per_channel) = (count("channels")?, count("chips_per_channel")?);
    let dies = channels * per_channel * count("dies_per_chip")?;
    let pages = count("planes_per_die")? * count("blocks_per_plane")? * count("pages_per_block")?;
    Some([channels, dies, dies * pages * bytes(flash.get("page_size")?)? / GIB])
}

/// GiB that the host can use: the raw flash without the over-provisioning. `None` for a device other than an SSD.
fn usable_gib(file: &Table) -> Option<f64> {
    let table = |name: &str| file.get(name).and_then(Value::as_table);
    let [.., gib] = raw(table("flash")?)?;
    let over = table("ftl")?.get("over_provisioning")?;
    let over = over.as_float().or_else(|| over.as_integer().map(|whole| whole as f64))?;
    Some(gib / (1.0 + over)).filter(|usable| *usable > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2 channels of 1 chip of 2 dies; 4 dies of 1 GiB MLC; 2 cores; 512 MiB of DRAM.
    #[test]
    fn a_cost_is_the_sum_of_its_parts() {
        let file = "[flash]\nchannels = 2\nchips_per_channel = 1\ndies_per_chip = 2\nplanes_per_die = 1\n\
                    blocks_per_plane = 1024\npages_per_block = 256\npage_size = \"4KiB\"\ncell = \"mlc\"\n\
                    [buffer]\nsize = \"512MiB\"\n[controller]\ncores = 2\n";
        let file: Table = toml::from_str(file).unwrap();
        let cost = CostModel::default().of(&file).unwrap();
        let wanted = 4.0 * 0.12 + 4.0 * 0.25 + 2.0 * 0.6 + 2.0 * 0.8 + 4.0 + 0.5 * 3.0;
        assert!((cost - wanted).abs() < 1e-9, "{cost} {wanted}");
        let over = |share: &str| -> Table {
            let ftl = format!("[ftl]\nover_provisioning = {share}\n");
            file.clone().into_iter().chain(toml::from_str::<Table>(&ftl).unwrap()).collect()
        };
        // Of 4 GiB raw flash 3.2 and 2 are left.
        for (share, usable) in [("0.25", 3.2), ("1", 2.0)] {
            let figures = CostModel::default().figures(Some(&over(share)));
            assert_eq!(figures[0], (COST, cost));
            assert!((figures[1].1 - cost / usable).abs() < 1e-9 && figures[1].0 == COST_PER_GIB);
        }
        let disk: Table = toml::from_str("rpm = 7200").unwrap();
        let priced = CostModel { other_device: Some(40.0), ..CostModel::default() };
        assert_eq!(priced.figures(Some(&disk)), [(COST, 40.0)]);
        assert_eq!(CostModel::default().of(&disk), None);
        assert_eq!(
            CostModel { other_device: Some(40.0), ..CostModel::default() }.of(&disk),
            Some(40.0)
        );
    }
}
