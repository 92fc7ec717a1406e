//! A plan: which clients load what, with which share, in which steps.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use ssdyno_session::{Document, Failure, Goal, RunSpec, nearest};

use crate::hosts::HostAddress;
use crate::load::{ClusterLoad, HostLoad};
use crate::plan_rates::{RateSweep, Rates};

/// Steps of a plan at most, with their rates and repetitions: more are a mistake.
const STEPS_MAX: usize = 10_000;

/// What the rates of a step may be.
const RATES_SUCH_AS: &str =
    "use a value such as 5000, [1000, 2000] or { from = 1000, to = 64000, points = 7 }";

/// Rates of one sweep at most.
const POINTS_MAX: u32 = 1_000;

/// A run on several hosts in steps, as in a TOML file. Each step is one run: its clients begin at the same time, and
/// its figures cover the time in which all clients were running.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterPlan {
    /// The load of the clients, with the keys of a spec (`ssdyno schema spec`).
    #[serde(default)]
    pub load: RunSpec,
    /// Arrivals of requests in steps with rates. Default: `poisson`.
    #[serde(default)]
    pub arrivals: RateArrivals,
    /// The clients, one or more.
    pub clients: Vec<PlanClient>,
    /// The steps, which run one after the other. Default: one step with all clients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PlanStep>,
}

/// Arrivals of requests with a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateArrivals {
    /// Exponential gaps. The merged arrivals of several clients also have exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps on each client.
    Fixed,
}

/// A client of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanClient {
    /// The host, in the syntax of `run --hosts`; each host has one client.
    pub host: String,
    /// Name of the client in steps and results. Default: its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Share of the rate of a step, above 0, in any unit: shares are divided by their sum over the clients of the step.
    /// Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Keys of the load that differ for this client: keys of a spec (`target`, `for`), or of the workload or the device
    /// (`workload.depth`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub change: Map<String, Value>,
}

/// A step of a plan.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PlanStep {
    /// Name of the step in results. Default: `step`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Names of the clients in this step; they may differ from step to step. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// Requests per second of all clients of the step together; the step runs once for each rate. Default: as in the
    /// load, which may be a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Number of repetitions with different random numbers, 1 or more. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Keys of the load that differ in this step, as in a client. A client's keys override the step's keys.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub change: Map<String, Value>,
}

/// A step that can be carried out.
#[derive(Clone, Debug)]
pub struct PlannedStep {
    /// Position of the step in the plan, from 1, with rates and repetitions counted.
    pub number: usize,
    /// Name of the step.
    pub name: String,
    /// Names of the clients.
    pub clients: Vec<String>,
    /// Requests per second of all clients together, where the plan says so.
    pub rate: Option<f64>,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// What its hosts run.
    pub load: ClusterLoad,
}

impl PlannedStep {
    /// The common goal of its clients.
    pub fn goal(&self) -> Goal {
        let (spec, count) = (&self.load.common, self.load.hosts.len() as u64);
        Goal {
            requests: spec.requests.map(|requests| requests.saturating_mul(count)),
            duration: spec.duration.map(|span| span.0),
        }
    }
}

/// A plan that was read.
#[derive(Clone, Debug)]
pub struct PlanFile {
    /// What it says.
    pub plan: ClusterPlan,
    /// The hosts of its clients, in their order.
    pub hosts: Vec<HostAddress>,
    /// The steps, in this order.
    pub steps: Vec<PlannedStep>,
}

impl PlanFile {
    /// Reads the plan in a TOML file.
    ///
    /// # Errors
    /// The file cannot be read, or the plan says what cannot be done; with the line of the key.
    pub fn read(path: &str) -> Result<PlanFile, Failure> {
        let (text, plan) = Document::read::<ClusterPlan>(path).map_err(explained)?;
        PlanFile::of(plan, &text)
    }

    /// The plan in `text`, which the user is editing; messages call it `name`.
    ///
    /// # Errors
    /// It says what cannot be done; with the line of the key.
    pub fn parse(name: &str, text: &str) -> Result<PlanFile, Failure> {
        let plan = Document::parse_edited(name, text, |text| toml::from_str(text));
        let plan = plan.map_err(explained)?;
        PlanFile::of(plan, &Document::edited(name.to_owned(), text))
    }

    /// The content of a `plan` that was not read from a text.
    ///
    /// # Errors
    /// It says what cannot be done; with the key.
    pub fn new(plan: ClusterPlan) -> Result<PlanFile, Failure> {
        PlanFile::of(plan, &Document::edited("the plan".to_owned(), ""))
            // The text is empty, so every place in it would be line 1. A caller
            // without a file gets the key alone.
            .map_err(|failure| Failure { place: None, ..failure })
    }

    fn of(plan: ClusterPlan, text: &Document) -> Result<PlanFile, Failure> {
        let reader = Reader { plan: &plan, text };
        let (hosts, steps) = (reader.hosts()?, reader.steps()?);
        Ok(PlanFile { plan, hosts, steps })
    }
}

/// A wrong value of a plan with a remedy of its own: `ssdyno explain` has the keys of a run, but not those of a plan.
fn explained(failure: Failure) -> Failure {
    if !failure.help.as_ref().is_some_and(|help| help.starts_with("`ssdyno explain ")) {
        return failure;
    }
    match failure.key.as_ref().is_some_and(|key| key.contains("].rates")) {
        true => failure.with_help(RATES_SUCH_AS),
        false => {
            failure.with_help("`ssdyno schema plan` has the keys and the types of their values")
        }
    }
}

/// A plan with the text that complaints point to.
struct Reader<'a> {
    plan: &'a ClusterPlan,
    text: &'a Document,
}

impl ClusterPlan {
    /// The name of client number `client`.
    fn name_of(&self, client: usize) -> &str {
        self.clients.get(client).map_or("", |client| client.name.as_deref().unwrap_or(&client.host))
    }

    fn share(&self, client: usize) -> f64 {
        self.clients.get(client).and_then(|client| client.share).unwrap_or(1.0)
    }
}

impl Reader<'_> {
    fn refuse<T>(&self, key: &str, message: &str, help: impl Into<String>) -> Result<T, Failure> {
        Err(self.text.about(key, format!("`{key}`: {message}"), help, "this value"))
    }

    /// The hosts of the clients. Names and hosts are there once.
    fn hosts(&self) -> Result<Vec<HostAddress>, Failure> {
        let clients = &self.plan.clients;
        if clients.is_empty() {
            let help = "add `[[clients]]` with a `host`";
            return self.refuse("clients", "no client is listed", help);
        }
        let (mut names, mut hosts) = (BTreeSet::new(), Vec::new());
        for (at, client) in clients.iter().enumerate() {
            let key = |key: &str| format!("clients[{at}].{key}");
            let host: HostAddress = match client.host.parse() {
                Ok(host) => host,
                Err(error) => {
                    let help = "use USER@HOST, HOST, HOST:PORT or tls://HOST:PORT";
                    return self.refuse(&key("host"), &error, help);
                }
            };
            // Two clients on one worker would fail only when the second one prepares, after all hosts have been
            // reached. The file with the line of the key is a better place for the error.
            if hosts.contains(&host) {
                let help = "a worker has one run at a time: start another worker there, or leave one client out";
                return self.refuse(&key("host"), &format!("another client uses {host}"), help);
            }
            let name = self.plan.name_of(at);
            if name.is_empty() || !names.insert(name.to_owned()) {
                let message = format!("the name `{name}` is empty or used twice");
                return self.refuse(&key("name"), &message, "give each client a unique name");
            }
            if client.share.is_some_and(|share| !(share.is_finite() && share > 0.0)) {
                let help = "use a number such as 1, 2 or 0.5";
                return self.refuse(&key("share"), "a share must be above 0", help);
            }
            hosts.push(host);
        }
        // A share without a rate has no effect. It is refused, because the author expects an effect and would read
        // the figures of equal clients as those of unequal ones.
        let shared = clients.iter().position(|client| client.share.is_some());
        if let Some(at) = shared.filter(|_| self.plan.steps.iter().all(|step| step.rates.is_none()))
        {
            let help = "add `rates` to a step, or give the client a `change` such as { workload.depth = 8 }";
            let message = "`share` divides the rate of a step, but no step has `rates`";
            return self.refuse(&format!("clients[{at}].share"), message, help);
        }
        Ok(hosts)
    }

    fn steps(&self) -> Result<Vec<PlannedStep>, Failure> {
        let all = [PlanStep::default()];
        let steps = if self.plan.steps.is_empty() { &all[..] } else { &self.plan.steps };
        let mut planned = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let clients = self.clients_of(at, step)?;
            let rates = self.rates_of(at, step)?;
            let repeat = step.repeat.unwrap_or(1);
            if repeat == 0 {
                let key = format!("steps[{at}].repeat");
                return self.refuse(&key, "it must be greater than zero", "use 1 or more");
            }
            for rate in rates {
                for repetition in 1..=repeat {
                    // The check comes before the clone of the load: `repeat = 4000000000` must be an
                    // error, not a program that runs out of memory.
                    if planned.len() == STEPS_MAX {
                        let message = format!("the plan has more than {STEPS_MAX} steps");
                        let help = "leave out rates or repetitions";
                        return self.refuse(&format!("steps[{at}]"), &message, help);
                    }
                    let load = self.load(at, step, &clients, rate, repetition)?;
                    planned.push(PlannedStep {
                        number: planned.len() + 1,
                        name: step.name.clone().unwrap_or_else(|| "step".to_owned()),
                        clients: clients
                            .iter()
                            .map(|at| self.plan.name_of(*at).to_owned())
                            .collect(),
                        rate,
                        repetition,
                        load,
                    });
                }
            }
        }
        Ok(planned)
    }

    /// Places of the clients of a step.
    fn clients_of(&self, at: usize, step: &PlanStep) -> Result<Vec<usize>, Failure> {
        let count = self.plan.clients.len();
        if step.clients.is_empty() {
            return Ok((0..count).collect());
        }
        let mut clients = Vec::new();
        for (place, name) in step.clients.iter().enumerate() {
            let key = format!("steps[{at}].clients[{place}]");
            let known = (0..count).find(|client| self.plan.name_of(*client) == name);
            let Some(client) = known else {
                let names: Vec<&str> = (0..count).map(|client| self.plan.name_of(client)).collect();
                let help = match nearest(name, names.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("the clients are {}", names.join(", ")),
                };
                return self.refuse(&key, &format!("there is no client `{name}`"), help);
            };
            if clients.contains(&client) {
                return self.refuse(&key, &format!("`{name}` is listed twice"), "leave one out");
            }
            clients.push(client);
        }
        // Seeds and results follow the order of the plan, not the order in the step. The same client
        // then has the same seed in each step that names it.
        clients.sort_unstable();
        Ok(clients)
    }

    fn rates_of(&self, at: usize, step: &PlanStep) -> Result<Vec<Option<f64>>, Failure> {
        let key = format!("steps[{at}].rates");
        let rates = match &step.rates {
            None => return Ok(vec![None]),
            Some(Rates::One(rate)) => vec![*rate],
            Some(Rates::Several(rates)) => rates.clone(),
            Some(Rates::Sweep(RateSweep { from, to, points })) => {
                if !(2..=POINTS_MAX).contains(points) {
                    let message = format!("{points} points");
                    return self.refuse(&key, &message, format!("use 2 to {POINTS_MAX} points"));
                }
                // A negative or zero rate makes this step NaN or infinite. No check is needed here: the
                // test of all rates below refuses such values.
                let step = (to / from).powf(1.0 / f64::from(points - 1));
                // The last rate is exactly the one that the plan names. A power of the ratio could give
                // 63999.99999999 instead of 64000 in tables and names.
                let rate = |n| if n + 1 == *points { *to } else { from * step.powi(n as i32) };
                (0..*points).map(rate).collect()
            }
        };
        let good = |rate: &f64| rate.is_finite() && *rate > 0.0;
        if rates.is_empty() || !rates.iter().all(good) {
            return self.refuse(&key, "it needs one or more rates, each above 0", RATES_SUCH_AS);
        }
        Ok(rates.into_iter().map(Some).collect())
    }

    /// The loads of the hosts of a step.
    fn load(
        &self,
        at: usize,
        step: &PlanStep,
        clients: &[usize],
        rate: Option<f64>,
        repetition: u32,
    ) -> Result<ClusterLoad, Failure> {
        let common = self.changed(&self.plan.load, &step.change, &format!("steps[{at}].change"))?;
        // Shares are divided by the sum over the clients of this step only. The step therefore reaches its rate
        // also when some clients of the plan do not take part.
        let total: f64 = clients.iter().map(|client| self.plan.share(*client)).sum();
        let mut hosts = Vec::with_capacity(clients.len());
        for &host in clients {
            let Some(client) = self.plan.clients.get(host) else { continue };
            // The keys of a client are applied after those of the step, so a client can keep its own
            // depth while a step changes the depth of all others.
            let changed =
                self.changed(&common, &client.change, &format!("clients[{host}].change"))?;
            let spec = match rate {
                Some(rate) => self.at_rate(&changed, rate * self.plan.share(host) / total)?,
                None => changed,
            };
            // As without a plan, host n has the seed plus n. Each repetition uses the next block of seeds: with the
            // same seeds it would repeat the same requests and show no spread.
            let place = host + self.plan.clients.len() * (repetition as usize - 1);
            let seed = spec.seed.wrapping_add(place as u64);
            hosts.push(HostLoad {
                host,
                name: Some(self.plan.name_of(host).to_owned()),
                spec: RunSpec { seed, ..spec },
            });
        }
        // The common spec has the whole rate. It goes into the result, where the rate of one
        // client would look like the rate of the step.
        let common = match rate {
            Some(rate) => self.at_rate(&common, rate)?,
            None => common,
        };
        Ok(ClusterLoad { common, hosts })
    }

    /// `spec` with the keys of a `change` in it, which stands at `place`.
    fn changed(
        &self,
        spec: &RunSpec,
        change: &Map<String, Value>,
        place: &str,
    ) -> Result<RunSpec, Failure> {
        let mut leaves = Vec::new();
        flatten("", change, &mut leaves);
        // Each key is applied alone, so that an error names the key and the line
        // in the plan, and not the whole table.
        leaves.into_iter().try_fold(spec.clone(), |spec, (key, value)| {
            spec.with(&key, &value).map_err(|failure| {
                let help = failure.help.clone().unwrap_or_default();
                self.text.about(&format!("{place}.{key}"), failure.message, help, "this value")
            })
        })
    }

    /// `spec` as an open loop with this number of requests per second.
    fn at_rate(&self, spec: &RunSpec, rate: f64) -> Result<RunSpec, Failure> {
        let spec = spec.with("workload.arrivals.kind", &json!(self.plan.arrivals))?;
        spec.with("workload.arrivals.rate", &json!(rate))
    }
}

/// `{ workload.depth = 8 }` is a table in a table, and one key of the load.
fn flatten(prefix: &str, table: &Map<String, Value>, leaves: &mut Vec<(String, Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Object(inner) => flatten(&key, inner, leaves),
            value => leaves.push((key, value.clone())),
        }
    }
}
