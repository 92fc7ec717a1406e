//! What the paper says in words, checked over all seeds.

use super::checks::*;
use super::stall;
use crate::Selector;
use crate::claims::{ClaimCheck, Claims, Verdict};

/// How a claim is checked.
pub(super) type Check = fn(&Evidence<'_>) -> Verdict;

/// All of them.
pub(super) const CLAIMS: Claims<Check> = Claims { paper: "S0", checks: CHECKS };

const CHECKS: &[ClaimCheck<Check>] = &[
    ClaimCheck {
        name: "reads_are_faster_than_writes",
        text: "\"The maximum I/O throughput can be achieved when the user performs only read operations\": a write of the user reads host memory, which needs more packets (S0-23).",
        about: &["figure5"],
        check: reads_are_faster,
    },
    ClaimCheck {
        name: "more_transactions_are_slower",
        text: "\"As the number of PCIe transactions needed ... increases, the total exchange rate decreases\": smaller blocks, same responses (S0-25).",
        about: &["figure5"],
        check: more_transactions_are_slower,
    },
    ClaimCheck {
        name: "one_engine_is_held_up",
        text: "One by one with one DMA engine is slower than the complete block, at every block size above 1 (S0-20).",
        about: &["figure5"],
        check: one_engine_is_held_up,
    },
    ClaimCheck {
        name: "a_second_engine_helps",
        text: "\"This situation can be avoided by using a separate DMA engine\": with it, one by one is no slower than the complete block (S0-20).",
        about: &["figure5"],
        check: a_second_engine_helps,
    },
    ClaimCheck {
        name: "maximum_is_largest_block_complete",
        text: "\"The maximum I/O rate is achieved by maximizing the block size and by answering all commands as a single block\" (S0-43).",
        about: &["figure5"],
        check: maximum_is_largest_block,
    },
    ClaimCheck {
        name: "least_latency_is_block_of_one",
        text: "\"The lowest latency can be achieved with the smallest block size\": with as many threads as descriptors in a block (S0-43).",
        about: &["figure6"],
        check: least_latency,
    },
    ClaimCheck {
        name: "below_the_link",
        text: "No run transfers more pages than the link allows: 411 184 per second with packets of 128 B (S0-48).",
        about: &["figure5", "figure6", "figure7"],
        check: below_the_link,
    },
    ClaimCheck {
        name: "more_threads_do_not_help",
        text: "\"Any increase in the number of threads ... does not further improve throughput\": from 2 B threads on, the throughput stays the same (S0-37).",
        about: &["figure6"],
        check: more_threads_do_not_help,
    },
    ClaimCheck {
        name: "larger_blocks_raise_throughput_and_latency",
        text: "\"Although the throughput is improving significantly for larger descriptors' block sizes, the latency also increases\" (S0-37).",
        about: &["figure6"],
        check: larger_blocks_raise_both,
    },
    ClaimCheck {
        name: "more_threads_than_a_block_suffice",
        text: "\"This can only be achieved if the number of threads ... is greater than that particular size\": more than B threads reach full throughput. With one block outstanding, the next full block is pending only from 2 B threads on (S0-50).",
        about: &["figure6"],
        check: more_threads_than_a_block,
    },
    ClaimCheck {
        name: "twice_the_block_suffices",
        text: "2 B threads reach full throughput (S0-50).",
        about: &["figure6"],
        check: twice_the_block,
    },
    ClaimCheck {
        name: "too_few_threads_are_found_out",
        text: "The figure has no points with fewer threads than descriptors in a block: the driver reports that it is stalled, and nothing hangs (S0-36).",
        about: &["figure6"],
        check: |evidence| stall::check(evidence.plan),
    },
    ClaimCheck {
        name: "dynamic_reaches_the_maximum",
        text: "\"The maximum achievable throughput is achieved for all cases\": with the most threads, dynamic blocks reach at least the throughput of the best static blocks (S0-39).",
        about: &["figure6", "figure7"],
        check: dynamic_reaches_the_maximum,
    },
    ClaimCheck {
        name: "dynamic_is_never_behind",
        text: "At every number of threads, dynamic blocks reach at least the throughput of the best static blocks.",
        about: &["figure6", "figure7"],
        check: dynamic_is_never_behind,
    },
    ClaimCheck {
        name: "dynamic_is_faster_under_light_load",
        text: "\"Minimum latency is observed when light workloads are applied\": one thread is as fast as with blocks of one descriptor, and no static block size that works is faster (S0-39).",
        about: &["figure6", "figure7"],
        check: dynamic_is_fast_under_light_load,
    },
    ClaimCheck {
        name: "ssd_answers_in_tens_of_microseconds",
        text: "A solid state drive's latency is \"tens of microseconds\": one thread waits between 10 and 100 us (S0-45).",
        about: &["figure7"],
        check: ssd_latency,
    },
    ClaimCheck {
        name: "disk_answers_in_tens_of_milliseconds",
        text: "A hard disk's is \"tens of milliseconds\" (S0-45).",
        about: &["figure7"],
        check: |_| None,
    },
    ClaimCheck {
        name: "latency_rises_exponentially",
        text: "\"As the offered load exceeds the system's storage capability, the latency, as expected, increases exponentially\": beyond saturation, each equal increase of threads multiplies the latency (S0-49).",
        about: &["figure7"],
        check: latency_rises_exponentially,
    },
    ClaimCheck {
        name: "littles_law",
        text: "In every run, the number of threads equals throughput times latency within 1 %, as in any closed loop (S0-49).",
        about: &["figure5", "figure6", "figure7"],
        check: littles_law,
    },
    ClaimCheck {
        name: "large_requests_raise_throughput_and_latency",
        text: "\"When a single-threaded user-space application uses data requests of large block sizes, a better throughput can be achieved, but at the same time the latency also increases\" (S0-40).",
        about: &["figure8"],
        check: large_requests,
    },
    ClaimCheck {
        name: "mixed_lies_between",
        text: "\"Mixed workloads will achieve a performance between the all-read and the all-write\" (S0-41).",
        about: &["mixed"],
        check: mixed_lies_between,
    },
    ClaimCheck {
        name: "prefetch_pays_more_on_gen3",
        text: "Prefetch \"can further improve the interface's efficiency, especially when Gen-3 PCIe technology is used\" (S0-26): tested with writes, whose transfers are limited by the link.",
        about: &["prefetch"],
        check: |evidence| prefetch_pays_more(evidence, 0),
    },
    ClaimCheck {
        name: "prefetch_pays_more_on_gen3_for_reads",
        text: "The same claim for reads, which are limited by the card's processor on both links.",
        about: &["prefetch"],
        check: |evidence| prefetch_pays_more(evidence, 100),
    },
];

/// Figures whose points the claims need that are named as such.
pub(super) fn needs(selector: &Selector) -> impl Iterator<Item = &'static str> {
    CLAIMS.named(selector).flat_map(|check| check.about.iter().copied())
}
