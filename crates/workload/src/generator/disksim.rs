//! DiskSim's synthetic generator (`disksim_synthio.c`, DiskSim 4.0), one generator, one device.
//!
//! The order of draws is DiskSim's, including those whose result is not used, because with its
//! `drand48` and its seeds the requests are then the very ones of S3: in sequential runs the size
//! between two wraps is one draw, and a handful of them decide the mean of five million requests.

use ssdyno_block::{Op, Request, Time};
use ssdyno_engine::Rng;

use super::Limits;
use crate::config::{DiskSimSynthetic, Numbers};
use crate::{Finished, Workload, WorkloadStep};

/// `drand48` of POSIX: x' = 0x5DEECE66D x + 11 modulo 2^48.
#[derive(Clone, Debug)]
struct Drand48(u64);

impl Drand48 {
    fn new(seed: u32) -> Drand48 {
        // POSIX `srand48` puts the seed into the high 32 bits and 0x330E into the low 16. Another
        // start would give a different sequence and other requests than S3-25.
        Drand48((u64::from(seed) << 16) | 0x330E)
    }
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & ((1 << 48) - 1);
        self.0 as f64 / (1_u64 << 48) as f64
    }
}

#[derive(Clone, Debug)]
enum Source {
    Drand48(Drand48),
    Seeded(Rng),
}

impl Source {
    #[inline]
    fn unit(&mut self) -> f64 {
        match self {
            Source::Drand48(numbers) => numbers.unit(),
            Source::Seeded(rng) => rng.unit(),
        }
    }
}

/// The generator; see [`DiskSimSynthetic`].
#[derive(Clone, Debug)]
pub(crate) struct DiskSim {
    limits: Limits,
    outstanding: u64,
    source: Source,
    gap_ps: f64,
    mean_sectors: f64,
    /// Sectors per block.
    block_sectors: u64,
    /// Size of the space in blocks.
    blocks: u64,
    sequential: f64,
    read: f64,
    /// The next request, in blocks.
    at: u64,
    length: u64,
    op: Op,
    arrival: Time,
    exact: bool,
}

const SECTOR: u64 = ssdyno_block::SECTOR_BYTES as u64;

impl DiskSim {
    /// Everything in `config` has been checked: block and space are multiples of 512 B, the space
    /// has many blocks of room for the mean size.
    pub(crate) fn new(config: &DiskSimSynthetic, limits: Limits, seed: u64) -> DiskSim {
        let exact = config.numbers == Numbers::Drand48;
        // DiskSim draws the first request before it sets its main seed. Both seeds are needed for
        // the exact sequence: with one seed, the sizes of sequential runs would already differ.
        let source = if exact {
            Source::Drand48(Drand48::new(config.first_seed))
        } else {
            Source::Seeded(Rng::new(seed, "workload disksim"))
        };
        let mut generator = DiskSim {
            limits,
            outstanding: 0,
            source,
            gap_ps: config.gap_max.0.as_ps() as f64,
            mean_sectors: config.mean_size.0 as f64 / SECTOR as f64,
            block_sectors: config.block.0 / SECTOR,
            blocks: config.space.0 / config.block.0,
            sequential: config.sequential_probability,
            read: config.read_probability,
            at: 0,
            length: 0,
            op: Op::Read,
            arrival: Time::ZERO,
            exact,
        };
        generator.draw_anew();
        if exact {
            generator.source = Source::Drand48(Drand48::new(config.main_seed));
        }
        generator
    }

    #[inline]
    fn wait(&mut self) {
        // S3-24: gaps are uniform between 0 and 1 ms, so the mean rate is 2000 per second, whatever
        // the SSD does. This explains why IOPS and running time are equal for all devices of S3.
        let gap = (self.source.unit() * self.gap_ps).round() as u64;
        self.arrival = self.arrival.saturating_add(Time::from_ps(gap));
    }

    /// Place, size and direction, all independent of the previous request.
    fn draw_anew(&mut self) {
        self.wait();
        self.source.unit(); // The device: there is one.
        loop {
            self.at = (self.source.unit() * self.blocks as f64) as u64;
            // Inverse of the exponential distribution. DiskSim cuts to whole sectors before it
            // rounds up to blocks; the mean of 8 sectors thereby becomes 12.66 sectors (S3-25).
            let sectors = (-self.mean_sectors * (1.0 - self.source.unit()).ln()) as u64;
            self.length = sectors.div_ceil(self.block_sectors);
            // Both values are drawn again if one of them is wrong, as in DiskSim. A new draw of the
            // size alone would consume other random numbers and shift all later requests.
            if self.length > 0 && self.at + self.length < self.blocks {
                break;
            }
        }
        self.op = if self.source.unit() < self.read { Op::Read } else { Op::Write };
        self.source.unit(); // Time-critical or time-limited: neither.
    }

    fn advance(&mut self) {
        let kind = self.source.unit();
        // The next request ends at `at` + 2 * `length`, so this is the test whether it fits. A
        // sequential run keeps one size between two wraps, which is why the mean of 5M requests is
        // 9.127 sectors (S3-25).
        if kind < self.sequential && self.at + 2 * self.length < self.blocks {
            self.wait();
            self.at += self.length;
            self.source.unit(); // Time-critical or time-limited: neither.
        } else {
            self.draw_anew();
        }
    }
}

impl Workload for DiskSim {
    fn next(&mut self, now: Time) -> WorkloadStep {
        if self.limits.left == 0 {
            return WorkloadStep::Done;
        }
        let intended = self.arrival;
        if intended >= self.limits.end {
            self.limits.left = 0;
            return WorkloadStep::Done;
        }
        if self.outstanding >= self.limits.depth {
            return WorkloadStep::Wait;
        }
        if intended > now {
            return WorkloadStep::NotBefore(intended);
        }
        let block = self.block_sectors * SECTOR;
        let request = Request {
            op: self.op,
            offset_bytes: self.at * block,
            length_bytes: (self.length * block) as u32,
        };
        self.advance();
        self.limits.left -= 1;
        self.outstanding += 1;
        WorkloadStep::Issue { request, intended }
    }

    fn completed(&mut self, _finished: Finished, _now: Time) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    fn notes(&self) -> Vec<String> {
        if !self.exact {
            return Vec::new();
        }
        vec![
            "random numbers are DiskSim's own (numbers = \"drand48\"): the seed of the run does not change the workload"
                .to_owned(),
        ]
    }
}
