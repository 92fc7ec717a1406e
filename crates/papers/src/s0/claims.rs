//! What the paper says in words, checked over all seeds.

use ssdyno_session::Failure;

use super::checks::*;
use super::stall;
use crate::claims::{Claims, Verdict};

/// How a claim is checked.
pub(super) type Check = fn(&Evidence<'_>) -> Verdict;

/// All of them.
pub(super) fn all() -> Result<Claims<Check>, Failure> {
    let text = include_str!("../../papers/s0/claims.toml");
    Claims::read("S0", ("papers/s0/claims.toml", text), CHECKS)
}

/// How the statements of the file are checked, in the order of a report.
const CHECKS: &[(&str, Check)] = &[
    ("reads_are_faster_than_writes", reads_are_faster),
    ("more_transactions_are_slower", more_transactions_are_slower),
    ("one_engine_is_held_up", one_engine_is_held_up),
    ("a_second_engine_helps", a_second_engine_helps),
    ("maximum_is_largest_block_complete", maximum_is_largest_block),
    ("least_latency_is_block_of_one", least_latency),
    ("below_the_link", below_the_link),
    ("more_threads_do_not_help", more_threads_do_not_help),
    ("larger_blocks_raise_throughput_and_latency", larger_blocks_raise_both),
    ("more_threads_than_a_block_suffice", more_threads_than_a_block),
    ("twice_the_block_suffices", twice_the_block),
    ("too_few_threads_are_found_out", |evidence| stall::check(evidence.plan)),
    ("dynamic_reaches_the_maximum", dynamic_reaches_the_maximum),
    ("dynamic_is_never_behind", dynamic_is_never_behind),
    ("dynamic_is_faster_under_light_load", dynamic_is_fast_under_light_load),
    ("ssd_answers_in_tens_of_microseconds", ssd_latency),
    ("disk_answers_in_tens_of_milliseconds", |_| None),
    ("latency_rises_exponentially", latency_rises_exponentially),
    ("littles_law", littles_law),
    ("large_requests_raise_throughput_and_latency", large_requests),
    ("mixed_lies_between", mixed_lies_between),
    ("prefetch_pays_more_on_gen3", |evidence| prefetch_pays_more(evidence, 0)),
    ("prefetch_pays_more_on_gen3_for_reads", |evidence| prefetch_pays_more(evidence, 100)),
];
