//! The commands that documents show must exist: each verb, each flag, each key of `--set`, each chore, each
//! package and target given to cargo.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use clap::CommandFactory;
use serde_json::Value;

use super::read::{Shown, Tool};
use super::{Document, documents};
use crate::artifacts;
use crate::command::Cmd;
use crate::report::Outcome;
use crate::workspace::Workspace;

/// What the README must show: the main job, and everything that the project checks.
const REQUIRED: &[&str] = &["cargo run --release -- run", "cargo xtask test"];

/// Options that documents name by themselves and that are none of the product or of a chore, with whose they are.
const FOREIGN: &[(&str, &str)] = &[
    ("--fingerprint", "the bench `scale` of ssdyno-ftl"),
    // Accepted, and not in the help.
    ("--iodepth", "fio's name of --depth"),
    ("--bs", "fio's name of --block-size"),
    ("--rwmixread", "fio's name of --read-percent"),
    ("--rate-iops", "fio's name of --rate"),
    ("--runtime", "fio's name of --for"),
];

/// Checks every shown command against the help of the command itself, and the published schemas.
///
/// # Errors
/// When a document or a schema cannot be read, or the product cannot be built or started.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    let documents = documents(workspace)?;
    let mut wrong = Vec::new();
    for document in documents.iter().filter(|document| document.name == "README.md") {
        let missing = REQUIRED.iter().filter(|needed| !document.text.contains(**needed));
        wrong.extend(missing.map(|needed| format!("README.md does not show `{needed}`")));
    }
    let mut known = Known::ask(workspace, artifacts::product(workspace)?)?;
    let mut count = 0;
    for Document { name, shown, .. } in &documents {
        for command in shown {
            count += 1;
            let what = known.judge(command)?;
            wrong.extend(what.into_iter().map(|what| format!("{name}:{}: {what}", command.line)));
        }
    }
    println!("{count} commands in {} documents", documents.len());
    for line in &wrong {
        println!("{line}");
    }
    Ok(match wrong.len() {
        _ if count == 0 => Outcome::Failed("the documents show no commands".to_owned()),
        0 => Outcome::Passed,
        n => Outcome::Failed(format!("{n} findings in commands that documents show, listed above")),
    })
}

/// What there is.
struct Known<'a> {
    workspace: &'a Workspace,
    product: Cmd,
    /// Help by verb, of the product (`true`) or of chores; `None` where there is no such verb.
    help: BTreeMap<(bool, String), Option<String>>,
    /// Schemas by name.
    schemas: BTreeMap<&'static str, Value>,
}

/// Where a key with this prefix is described; one schema of them must have it.
const SCHEMAS: &[(&str, &[&str])] = &[
    ("workload.", &["workload"]),
    ("network.", &["network"]),
    ("", &["device", "ring-card", "delay"]),
];

impl<'a> Known<'a> {
    fn ask(workspace: &'a Workspace, product: Cmd) -> Result<Self> {
        let mut schemas = BTreeMap::new();
        for name in SCHEMAS.iter().flat_map(|(_, names)| names.iter().copied()) {
            let path = workspace.root.join(format!("docs/schemas/{name}.json"));
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            schemas.insert(name, serde_json::from_str(&text)?);
        }
        Ok(Self { workspace, product, help: BTreeMap::new(), schemas })
    }

    /// The error of a command.
    fn judge(&mut self, shown: &Shown) -> Result<Vec<String>> {
        let mut wrong = self.unknown_keys(shown);
        match shown.tool {
            Tool::Cargo => wrong.extend(self.unknown_targets(shown)),
            Tool::Options => wrong.extend(self.unknown_options(shown)?),
            Tool::Product | Tool::Xtask => {
                // The name of the program alone.
                let Some(verb) = shown.verb() else { return Ok(wrong) };
                let help = self.help(shown.tool == Tool::Product, verb)?;
                wrong.extend(unknown_flags(shown, verb, help));
            }
        }
        Ok(wrong)
    }

    /// The help text of a verb; `None` when there is no such verb.
    fn help(&mut self, product: bool, verb: &str) -> Result<Option<&str>> {
        let key = (product, verb.to_owned());
        if !self.help.contains_key(&key) {
            let help = if product {
                let captured = self.product.clone().args([verb, "--help"]).capture()?;
                let mut text = captured.ok.then_some(captured.stdout);
                // Options of the verbs below a verb count as its own.
                for below in text.as_deref().map(verbs).unwrap_or_default() {
                    let args = [verb, &below, "--help"];
                    let captured = self.product.clone().args(args).capture()?;
                    text.iter_mut().for_each(|text| text.push_str(&captured.stdout));
                }
                text
            } else {
                let mut cli = crate::Cli::command();
                cli.find_subcommand_mut(verb).map(|c| c.render_long_help().to_string())
            };
            self.help.insert(key.clone(), help);
        }
        Ok(self.help[&key].as_deref())
    }

    /// Options of a span that names no verb: any verb or chore may have them.
    fn unknown_options(&mut self, shown: &Shown) -> Result<Vec<String>> {
        let summary = self.product.clone().args(["--help"]).capture()?.stdout;
        let chores: Vec<String> =
            crate::Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        let mut texts = Vec::new();
        for (product, verbs) in [(true, verbs(&summary)), (false, chores)] {
            for verb in verbs {
                texts.extend(self.help(product, &verb)?.map(str::to_owned));
            }
        }
        let known = |flag: &str| {
            FOREIGN.iter().any(|(option, _)| *option == flag)
                || texts.iter().any(|text| has(text, flag))
        };
        let unknown = shown.flags().filter(|flag| !known(flag));
        Ok(unknown.map(|flag| format!("no verb and no chore has an option `{flag}`")).collect())
    }

    /// Packages and targets that cargo would not find.
    fn unknown_targets(&self, shown: &Shown) -> Vec<String> {
        let packages = &self.workspace.packages;
        let mut wrong: Vec<String> = shown
            .values("-p")
            .filter(|name| !self.workspace.has(name))
            .map(|name| format!("there is no package `{name}`"))
            .collect();
        for (option, kind) in
            [("--example", "example"), ("--bench", "bench"), ("--test", "test"), ("--bin", "bin")]
        {
            let asked: Vec<&str> = shown.values("-p").collect();
            for name in shown.values(option) {
                let mut owners =
                    packages.iter().filter(|p| asked.is_empty() || asked.contains(&&*p.name));
                let is_it = |t: &crate::workspace::Target| {
                    t.name == name && t.kind.iter().any(|k| k == kind)
                };
                if !owners.any(|package| package.targets.iter().any(is_it)) {
                    wrong.push(format!("there is no {kind} `{name}`"));
                }
            }
        }
        wrong
    }

    /// Keys of `--set` that no schema has.
    fn unknown_keys(&self, shown: &Shown) -> Vec<String> {
        let mut wrong = Vec::new();
        for setting in shown.values("--set") {
            let key = setting.split('=').next().unwrap_or(setting);
            let (prefix, names) =
                SCHEMAS.iter().find(|(prefix, _)| key.starts_with(prefix)).unwrap_or(&("", &[]));
            let path = &key[prefix.len()..];
            let placeholder = key.chars().all(|c| c.is_ascii_uppercase());
            if !placeholder && !names.iter().any(|name| has_key(&self.schemas[name], path)) {
                wrong.push(format!("`--set {setting}`: there is no key `{key}`"));
            }
        }
        wrong
    }
}

/// Flags of a command that the help of its verb does not name, or the verb itself.
fn unknown_flags(shown: &Shown, verb: &str, help: Option<&str>) -> Vec<String> {
    let Some(help) = help else {
        return vec![format!("there is no verb `{verb}`")];
    };
    let missing = shown.flags().filter(|flag| !has(help, flag));
    missing.map(|flag| format!("`{verb}` has no option `{flag}`")).collect()
}

/// Whether a help text names an option, and not just one that begins like it.
fn has(help: &str, flag: &str) -> bool {
    help.match_indices(flag).any(|(at, _)| {
        let next = help[at + flag.len()..].chars().next();
        !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

/// Whether a JSON schema describes a key, given with dots.
fn has_key(schema: &Value, key: &str) -> bool {
    key.split('.')
        .try_fold(vec![schema], |places, part| {
            let inner: Vec<&Value> = places
                .into_iter()
                .flat_map(|place| alternatives(schema, place))
                .filter_map(|place| place.get("properties")?.get(part))
                .collect();
            (!inner.is_empty()).then_some(inner)
        })
        .is_some()
}

/// The possible places of a schema: itself, its references, or one of several.
fn alternatives<'a>(schema: &'a Value, place: &'a Value) -> Vec<&'a Value> {
    if let Some(name) = place.get("$ref").and_then(Value::as_str) {
        let target = name.strip_prefix('#').and_then(|pointer| schema.pointer(pointer));
        return target.map_or_else(Vec::new, |target| alternatives(schema, target));
    }
    let choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|of| place.get(*of)?.as_array());
    let inner = choices.flatten().flat_map(|choice| alternatives(schema, choice));
    std::iter::once(place).chain(inner).collect()
}

/// The verbs that a help text lists.
fn verbs(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = below.take_while(|line| !line.is_empty());
    let name = |line: &str| Some(line.strip_prefix("  ")?.split(' ').next()?.to_owned());
    rows.filter_map(name).filter(|name| !name.is_empty() && name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::super::read::commands;
    use super::*;

    /// Everything but what needs the product.
    fn known(workspace: &Workspace) -> Known<'_> {
        Known::ask(workspace, Cmd::new("no-such-program-anywhere")).unwrap()
    }

    #[test]
    fn unknown_verbs_and_flags_are_named() {
        let shown = &commands("`ssdyno run sim:x --seed 1 --for=2s`")[0];
        assert_eq!(unknown_flags(shown, "run", None), ["there is no verb `run`"]);
        let found = unknown_flags(shown, "run", Some("  --seed <N>\n  --for-ever"));
        assert_eq!(found, ["`run` has no option `--for`"]);
        assert!(unknown_flags(shown, "run", Some("--seed <N> --for <TIME>")).is_empty());
    }

    #[test]
    fn unknown_chores_packages_targets_and_keys_are_named() {
        let workspace = Workspace::load().unwrap();
        let mut known = known(&workspace);
        let mut judge = |text: &str| known.judge(&commands(&format!("`{text}`"))[0]).unwrap();
        assert!(judge("cargo xtask soak --minutes 60").is_empty());
        assert_eq!(judge("cargo xtask soak --hours 1"), ["`soak` has no option `--hours`"]);
        assert_eq!(judge("cargo xtask soap"), ["there is no verb `soap`"]);
        assert!(judge("cargo run -p ssdyno-ftl --example ring_log").is_empty());
        assert_eq!(judge("cargo test -p ssdyno-ft"), ["there is no package `ssdyno-ft`"]);
        let elsewhere = judge("cargo run -p ssdyno-vfio --example ring_log");
        assert_eq!(elsewhere, ["there is no example `ring_log`"]);
        for key in ["KEY=VALUE", "workload.address.theta=1", "faults.drop=1e-4", "ftl.name=…"] {
            assert!(judge(&format!("ssdyno --set {key}")).is_empty(), "{key}");
        }
        for key in ["network.faults.reset=1", "nvme.namespaces=[]", "delay.read=1us"] {
            let found = judge(&format!("ssdyno --set {key}"));
            assert!(found.is_empty(), "{found:?}");
        }
        for key in ["ftl.nam", "workload.drop", "faults", "network.faults.drop.more"] {
            let found = judge(&format!("ssdyno --set {key}=1"));
            let expected = format!("`--set {key}=1`: there is no key `{key}`");
            assert_eq!(found, if key == "faults" { vec![] } else { vec![expected] });
        }
    }
}
