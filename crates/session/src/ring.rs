//! `--ring KEY=VALUE,…`: how the ring driver works.

use std::fmt;
use std::str::FromStr;

use ssdyno_block::units::Span;
use ssdyno_driver_ring::{BlockPolicy, CompletionPolicy, IdleDispatch, RingDriverOptions};
use ssdyno_spec::ring::ResponseMode;

/// The keys, as an error lists them.
const KEYS: &str = "block, partial-after, max-block, idle, response, completion, prefetch, queue-depth, ring-size, timeout";

/// Options of the ring driver, and how they were typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingSpec {
    /// As it was typed.
    pub typed: String,
    /// Its meaning; keys that were not typed have their defaults.
    pub options: RingDriverOptions,
}

impl fmt::Display for RingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

impl FromStr for RingSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<RingSpec, String> {
        let mut options = RingDriverOptions::default();
        for part in text.split(',') {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not KEY=VALUE; keys are {KEYS}"))?;
            set(&mut options, key.trim(), value.trim())?;
        }
        Ok(RingSpec { typed: text.to_owned(), options })
    }
}

fn set(options: &mut RingDriverOptions, key: &str, value: &str) -> Result<(), String> {
    match key {
        "block" if value == "dynamic" => options.block = BlockPolicy::Dynamic,
        "block" => options.block = BlockPolicy::Static(number(key, value, "dynamic or a number")?),
        "partial-after" => options.partial_after = Some(time(key, value)?),
        "max-block" => options.max_block = Some(number(key, value, "a number")?),
        "idle" => {
            options.idle_dispatch = match value {
                "first" => IdleDispatch::FirstDescriptor,
                "request" => IdleDispatch::WholeRequest,
                _ => return Err(bad(key, value, "first or request")),
            }
        }
        "response" => {
            (options.response, options.subset) = match value.split_once(':') {
                None if value == "block" => (ResponseMode::Block, 1),
                None if value == "each" => (ResponseMode::Each, 1),
                Some(("subset", n)) => (ResponseMode::Subsets, number(key, n, "subset:N")?),
                _ => return Err(bad(key, value, "block, each or subset:N")),
            }
        }
        "completion" => options.completion = completion(key, value)?,
        "prefetch" => options.prefetch = number(key, value, "a number")?,
        "queue-depth" => options.queue_depth = number(key, value, "a number")?,
        "ring-size" => options.ring_size = Some(number(key, value, "a power of two")?),
        "timeout" => options.timeout = time(key, value)?,
        _ => return Err(format!("the ring driver has no `{key}`; keys are {KEYS}")),
    }
    Ok(())
}

/// `block`, `return`, `napi:BUDGET`, `calibrated:THRESHOLD:TIMEOUT`, `hybrid:INTERVAL`.
fn completion(key: &str, value: &str) -> Result<CompletionPolicy, String> {
    let parts: Vec<&str> = value.split(':').collect();
    Ok(match parts[..] {
        ["block"] => CompletionPolicy::PerBlock,
        ["return"] => CompletionPolicy::PerReturn,
        ["napi", budget] => CompletionPolicy::Napi { budget: number(key, budget, "napi:BUDGET")? },
        ["calibrated", threshold, timeout] => CompletionPolicy::Calibrated {
            threshold: number(key, threshold, "calibrated:THRESHOLD:TIMEOUT")?,
            timeout: time(key, timeout)?,
        },
        ["hybrid", interval] => CompletionPolicy::HybridPolling { interval: time(key, interval)? },
        _ => {
            let wanted =
                "block, return, napi:BUDGET, calibrated:THRESHOLD:TIMEOUT or hybrid:INTERVAL";
            return Err(bad(key, value, wanted));
        }
    })
}

fn number(key: &str, value: &str, wanted: &str) -> Result<u32, String> {
    value.parse().map_err(|_| bad(key, value, wanted))
}

fn time(key: &str, value: &str) -> Result<ssdyno_block::Time, String> {
    value.parse::<Span>().map(|span| span.0).map_err(|_| bad(key, value, "a time such as 100us"))
}

fn bad(key: &str, value: &str, wanted: &str) -> String {
    format!("`{value}` is not a value of `{key}`: use {wanted}")
}

ssdyno_block::text_form!(RingSpec, "KEY=VALUE,… of the ring driver", "^[a-z-]+=");

#[cfg(test)]
mod tests {
    use super::*;
    use ssdyno_block::Time;

    #[test]
    fn every_key_sets_what_it_names() {
        let text = "block=16,partial-after=100us,max-block=64,idle=request,response=subset:4,completion=napi:32,prefetch=8,queue-depth=256,ring-size=512,timeout=2s";
        let set = text.parse::<RingSpec>().unwrap().options;
        let expected = RingDriverOptions {
            block: BlockPolicy::Static(16),
            partial_after: Some(Time::from_us(100)),
            max_block: Some(64),
            idle_dispatch: IdleDispatch::WholeRequest,
            response: ResponseMode::Subsets,
            subset: 4,
            completion: CompletionPolicy::Napi { budget: 32 },
            prefetch: 8,
            queue_depth: 256,
            ring_size: Some(512),
            own_pages: true,
            timeout: Time::from_s(2),
        };
        assert_eq!(set, expected);
        let completion = |text: &str| text.parse::<RingSpec>().unwrap().options.completion;
        assert_eq!(completion("completion=block"), CompletionPolicy::PerBlock);
        assert_eq!(completion("response=each,completion=return"), CompletionPolicy::PerReturn);
        assert_eq!(
            completion("completion=calibrated:8:20us"),
            CompletionPolicy::Calibrated { threshold: 8, timeout: Time::from_us(20) }
        );
        assert_eq!(
            completion("completion=hybrid:1us"),
            CompletionPolicy::HybridPolling { interval: Time::from_us(1) }
        );
        assert_eq!(
            "block=dynamic".parse::<RingSpec>().unwrap().options,
            RingDriverOptions::default()
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("blocks=3", "no `blocks`"),
            ("block", "KEY=VALUE"),
            ("block=many", "dynamic or a number"),
            ("response=subset", "subset:N"),
            ("response=subset:x", "subset:N"),
            ("completion=napi", "napi:BUDGET"),
            ("completion=calibrated:4:soon", "a time such as"),
            ("timeout=2", "a time such as"),
        ] {
            let error = text.parse::<RingSpec>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
