//! The schedulers' models of the figures.

use super::load::Figure;
use super::result::{CapacityFigure, CapacityResult};
use crate::measure::ProfileOp;

/// One second of the kernel's virtual time (`VTIME_PER_SEC` of `block/blk-iocost.c`).
const VTIME_PER_SECOND: u64 = 1 << 37;
/// Bytes of a page of the model (`IOC_PAGE_SIZE`).
const PAGE_BYTES: u64 = 4096;

/// The linear cost model of `block/blk-iocost.c`, in its own integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinearModel {
    /// Cost of a page, of a sequential and of a random request: reads.
    read: [u64; 3],
    write: [u64; 3],
}

/// `calc_lcoefs`: a base cost is what a request of one page costs more than its page, and never below 0.
fn coefficients(bps: u64, seqiops: u64, randiops: u64) -> [u64; 3] {
    let page = match bps {
        0 => 0,
        bps => VTIME_PER_SECOND.div_ceil(bps.div_ceil(PAGE_BYTES)),
    };
    // `calc_lcoefs` subtracts the page from the cost of a request and takes 0 if nothing is
    // left. The prediction repeats the arithmetic of the kernel, with its rounding.
    let base = |iops: u64| match iops {
        0 => 0,
        iops => VTIME_PER_SECOND.div_ceil(iops).saturating_sub(page),
    };
    [page, base(seqiops), base(randiops)]
}

impl LinearModel {
    /// Of the figures, in the order of [`Figure::ALL`]; 0 costs nothing.
    pub fn new(figures: [u64; 6]) -> LinearModel {
        let [rbps, rseq, rrand, wbps, wseq, wrand] = figures;
        LinearModel {
            read: coefficients(rbps, rseq, rrand),
            write: coefficients(wbps, wseq, wrand),
        }
    }

    /// Cost of a random request of `bytes`, in seconds of the device (`calc_vtime_cost_builtin`).
    pub fn random_cost_seconds(&self, is_read: bool, bytes: u64) -> f64 {
        let [page, _, random] = if is_read { self.read } else { self.write };
        // The kernel counts whole pages, at least one. The prediction rounds in the same way,
        // because it says what the kernel will do.
        let pages = (bytes / PAGE_BYTES).max(1);
        (random + pages * page) as f64 / VTIME_PER_SECOND as f64
    }

    /// Requests per second of a saturated device with random requests of `bytes`, of which the share `reads` (0 to
    /// 1) are reads. `None` where nothing costs anything.
    pub fn random_rate(&self, reads: f64, bytes: u64) -> Option<f64> {
        let cost = reads * self.random_cost_seconds(true, bytes)
            + (1.0 - reads) * self.random_cost_seconds(false, bytes);
        (cost > 0.0).then(|| 1.0 / cost)
    }
}

/// The model of Seastar's I/O scheduler: requests and bytes of both directions take shares of the disk that sum to 1 at
/// most (`io_properties.yaml` without `duplex`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeastarModel {
    /// Reads per second.
    pub read_iops: f64,
    /// Bytes per second.
    pub read_bandwidth: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Bytes per second.
    pub write_bandwidth: f64,
}

impl SeastarModel {
    /// Of the figures by `value`.
    pub fn new(value: impl Fn(Figure) -> f64) -> SeastarModel {
        SeastarModel {
            read_iops: value(Figure::Rrandiops),
            read_bandwidth: value(Figure::Rbps),
            write_iops: value(Figure::Wrandiops),
            write_bandwidth: value(Figure::Wbps),
        }
    }

    /// As [`LinearModel::random_rate`].
    pub fn random_rate(&self, reads: f64, bytes: u64) -> f64 {
        let bytes = bytes as f64;
        let read = 1.0 / self.read_iops + bytes / self.read_bandwidth;
        let write = 1.0 / self.write_iops + bytes / self.write_bandwidth;
        1.0 / (reads * read + (1.0 - reads) * write)
    }
}

/// Requests per second of random requests of `bytes`, of which the share `reads` are reads: by the kernel's model and
/// by Seastar's, with the figures of `capacity`. `None` where one that is needed is missing.
pub(crate) fn predicted(
    capacity: &CapacityResult,
    reads: f64,
    bytes: u64,
) -> (Option<f64>, Option<f64>) {
    let needed = |op| reads < 1.0 || op == ProfileOp::Read;
    // A missing figure would count as no cost at all, and the prediction would promise too
    // much. Figures of writes are not needed for a load of reads.
    let has = Figure::ALL
        .into_iter()
        .all(|figure| !needed(figure.op()) || capacity.figure(figure).is_some());
    let value = |figure| capacity.figure(figure).map_or(f64::INFINITY, |one| one.estimate);
    let rounded = |figure| capacity.figure(figure).map_or(0, CapacityFigure::rounded);
    let linear = LinearModel::new(Figure::ALL.map(rounded)).random_rate(reads, bytes);
    let seastar = SeastarModel::new(value).random_rate(reads, bytes);
    (linear.filter(|_| has), has.then_some(seastar))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own defaults of an SSD (`autop`, `AUTOP_SSD_DFL`). A page of reads costs 4096 / 488636629 s =
    /// 8.382 us, a random read 1 / 8518 s = 117.398 us, of 64 KiB 15 pages more.
    #[test]
    fn costs_are_those_of_the_kernel() {
        let model = LinearModel::new([488_636_629, 8932, 8518, 427_891_549, 28_755, 21_940]);
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-4;
        assert!(near(model.random_cost_seconds(true, 4096), 1.0 / 8518.0));
        let large = 1.0 / 8518.0 + 15.0 * 4096.0 / 488_636_629.0;
        assert!(near(model.random_cost_seconds(true, 65_536), large));
        assert!(near(model.random_rate(1.0, 4096).unwrap(), 8518.0));
        let mixed = 1.0 / (0.7 / 8518.0 + 0.3 / 21_940.0);
        assert!(near(model.random_rate(0.7, 4096).unwrap(), mixed));
        // The sector of 512 bytes counts as a page.
        assert!(near(model.random_rate(0.0, 512).unwrap(), 21_940.0));
    }

    /// More requests than the bandwidth allows leave no base cost: the page alone counts.
    #[test]
    fn a_base_cost_is_never_negative() {
        let model = LinearModel::new([4_096_000, 2000, 2000, 0, 0, 0]);
        assert!((model.random_rate(1.0, 4096).unwrap() / 1000.0 - 1.0).abs() < 1e-6);
        assert_eq!(model.random_rate(0.0, 4096), None);
        // Figures at the ends of u64 neither overflow nor divide by zero.
        LinearModel::new([u64::MAX; 6]).random_rate(0.5, 1 << 20);
        LinearModel::new([1; 6]).random_rate(0.5, 1 << 20);
    }

    #[test]
    fn seastar_adds_requests_and_bytes() {
        let model = SeastarModel {
            read_iops: 100_000.0,
            read_bandwidth: 1e9,
            write_iops: 50_000.0,
            write_bandwidth: 5e8,
        };
        let expected = 1.0 / (1e-5 + 65_536.0 / 1e9);
        assert!((model.random_rate(1.0, 65_536) / expected - 1.0).abs() < 1e-12);
    }
}
