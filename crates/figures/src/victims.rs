//! What garbage collection cleaned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The blocks that garbage collection cleaned (the *victims*), by the share of their data pages that were still valid
/// and had to be moved. Blocks that wear levelling moved are not counted.
///
/// In a steady state each host page costs 1/(1 - `valid_mean`) programs: a lower share makes cleaning
/// cheaper.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GcVictims {
    /// Blocks cleaned.
    pub blocks: u64,
    /// Number of valid pages of all victims divided by the number of their data pages, 0 to 1.
    pub valid_mean: f64,
    /// 10th percentile of the valid share of the blocks, 0 to 1, interpolated within the parts of `by_valid_share`.
    pub valid_p10: f64,
    /// 90th percentile of the valid share of the blocks.
    pub valid_p90: f64,
    /// Number of blocks by valid share: below 5 %, 5 to below 10 %, and so on up to 95 to 100 %. The 20 counts sum to
    /// `blocks`.
    pub by_valid_share: Vec<u64>,
}

impl GcVictims {
    /// From the counts of 20 equal parts, and the mean share; `None` where nothing was cleaned.
    pub fn new(by_valid_share: Vec<u64>, valid_mean: f64) -> Option<GcVictims> {
        let blocks = by_valid_share.iter().sum();
        let percentile = |share| percentile(&by_valid_share, share);
        let (valid_p10, valid_p90) = (percentile(0.1), percentile(0.9));
        (blocks > 0).then_some(GcVictims {
            blocks,
            valid_mean,
            valid_p10,
            valid_p90,
            by_valid_share,
        })
    }
}

/// The value that `share` of what is counted in equal parts of 0 to 1 is below, as if it lay evenly in each part.
fn percentile(counts: &[u64], share: f64) -> f64 {
    let (parts, all) = (counts.len() as f64, counts.iter().sum::<u64>() as f64);
    let mut left = share * all;
    for (part, count) in counts.iter().enumerate() {
        let count = *count as f64;
        if count > 0.0 && left <= count {
            return (part as f64 + left / count) / parts;
        }
        left -= count;
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_within_their_parts() {
        let mut counts = vec![0; 20];
        (counts[4], counts[5], counts[10]) = (20, 60, 20);
        let victims = GcVictims::new(counts, 0.3).unwrap();
        assert_eq!(victims.blocks, 100);
        // Half of the part from 0.2 to 0.25, and half of that from 0.5 to 0.55.
        assert!((victims.valid_p10 - 0.225).abs() < 1e-12, "{victims:?}");
        assert!((victims.valid_p90 - 0.525).abs() < 1e-12, "{victims:?}");
        assert_eq!(GcVictims::new(vec![0; 20], 0.0), None);
    }
}
