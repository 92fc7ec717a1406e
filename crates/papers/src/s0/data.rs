//! The paper's files, and the points that its figures are made of.

use serde::Deserialize;
use ssdyno_driver_ring::ResponseMode;

use crate::error::paper_files;
use crate::measured::Point;
use crate::printed::{PrintedNumber, Titled};

paper_files!("s0": Printed in "printed.toml", Plan in "plan.toml"; assumptions in "assumptions.toml");

/// `printed.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub(super) title: String,
    pub(super) cells: Vec<PrintedNumber>,
}

/// `plan.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) notes: Vec<String>,
    pub(super) figures: Vec<Titled>,
    pub(super) seeds: Vec<u64>,
    pub(super) requests: u64,
    pub(super) ramp_up: u64,
    pub(super) card: String,
    pub(super) host: String,
    pub(super) fed_threads: u32,
    pub(super) block_sizes: Vec<u32>,
    pub(super) static_blocks: Vec<u32>,
    pub(super) threads: Vec<u32>,
    pub(super) sizes_kib: Vec<u32>,
    pub(super) mixed_threads: u32,
    pub(super) read_percents: Vec<u32>,
    pub(super) generations: Vec<u32>,
    pub(super) prefetch: u32,
    pub(super) completion_threads: Vec<u32>,
}

ssdyno_block::named! {
    /// A completion policy by name.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub(super) enum Completion: name {
        PerBlock = "interrupt per block",
        PerReturn = "interrupt per return",
        Napi = "NAPI-like, budget 16",
        Calibrated = "calibrated, 8 or 20 us",
    }
}

impl Completion {
    /// As `host.ring` of a spec has it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Completion::PerBlock => "block",
            Completion::PerReturn => "return",
            Completion::Napi => "napi:16",
            Completion::Calibrated => "calibrated:8:20us",
        }
    }
}

/// A point of a figure: one run for each seed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Case {
    /// Size of static blocks; `None`: dynamic.
    pub(super) block: Option<u32>,
    pub(super) mode: ResponseMode,
    pub(super) separate_engine: bool,
    pub(super) generation: u32,
    pub(super) prefetch: u32,
    pub(super) completion: Completion,
    pub(super) threads: u32,
    pub(super) size_kib: u32,
    pub(super) read_percent: u32,
}

impl Case {
    /// The dynamic driver as the paper has it, with pages of 4 KiB.
    pub(super) fn dynamic(threads: u32, read_percent: u32) -> Case {
        Case {
            block: None,
            mode: ResponseMode::Block,
            separate_engine: false,
            // S0-48: the card of the paper is PCIe Gen2 x4. Only the figure about prefetching
            // (S0-26) also uses another generation.
            generation: 2,
            prefetch: 0,
            completion: Completion::PerBlock,
            threads,
            size_kib: 4,
            read_percent,
        }
    }

    /// The static driver as the paper has it.
    pub(super) fn fixed(block: u32, threads: u32, read_percent: u32) -> Case {
        Case { block: Some(block), ..Case::dynamic(threads, read_percent) }
    }
}

impl Point for Case {
    fn name(&self, seed: u64) -> String {
        let blocks = self.block.map_or("dynamic".to_owned(), |block| format!("static_{block}"));
        let mode = match self.mode {
            ResponseMode::Block => "a",
            ResponseMode::Each => "b",
            ResponseMode::Subsets => "c",
        };
        let engines = if self.separate_engine { 2 } else { 1 };
        let Case { generation, prefetch, threads, size_kib, read_percent, .. } = self;
        format!(
            "{blocks}_mode_{mode}_{engines}_dma_gen{generation}_prefetch_{prefetch}_{}_{threads}_threads_{size_kib}k_{read_percent}_percent_reads_seed_{seed}",
            self.completion.name().replace([' ', ','], "_")
        )
    }
}

/// Figure 5's ways of response: name, mode, second engine.
pub(super) const RESPONSES: [(&str, ResponseMode, bool); 3] = [
    ("complete block", ResponseMode::Block, false),
    ("one by one, 1 DMA", ResponseMode::Each, false),
    ("one by one, 2 DMA", ResponseMode::Each, true),
];

/// All reads, all writes.
pub(super) const WAYS: [(&str, u32); 2] = [("read", 100), ("write", 0)];

impl Plan {
    /// A point of figure 5.
    pub(super) fn fed(
        &self,
        block: u32,
        read_percent: u32,
        (_, mode, separate_engine): (&str, ResponseMode, bool),
    ) -> Case {
        let completion = match mode {
            ResponseMode::Block => Completion::PerBlock,
            // Early returns without an interrupt would reach the host only at the end of the block,
            // and modes B and C would differ from mode A in the load of the DMA engine alone.
            ResponseMode::Each | ResponseMode::Subsets => Completion::PerReturn,
        };
        let base = Case::fixed(block, self.fed_threads, read_percent);
        Case { mode, separate_engine, completion, ..base }
    }

    /// Figure 8: one thread with requests of `size_kib`; as many threads as it has pages.
    pub(super) fn large(&self, size_kib: u32, read_percent: u32) -> [Case; 2] {
        [
            Case { size_kib, ..Case::dynamic(1, read_percent) },
            // S0-4: a large request is split into bios of 4 KiB. As many threads with 4 KiB each
            // have the same number of pages outstanding, so only the splitting differs.
            Case::dynamic(size_kib / 4, read_percent),
        ]
    }

    /// Without prefetch, and with.
    pub(super) fn prefetched(&self, generation: u32, read_percent: u32) -> [Case; 2] {
        let base = Case {
            generation,
            // Prefetching is tested with a second engine. With one engine, the descriptors of the
            // next block would wait for the data of this one, and the gain would be hidden (S0-20).
            separate_engine: true,
            ..Case::dynamic(self.fed_threads, read_percent)
        };
        [base.clone(), Case { prefetch: self.prefetch, ..base }]
    }

    /// Reads with a completion policy.
    pub(super) fn completed(&self, threads: u32, completion: Completion) -> Case {
        let mode = ResponseMode::Each;
        Case { mode, separate_engine: true, completion, ..Case::dynamic(threads, 100) }
    }
}
