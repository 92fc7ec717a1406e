//! The commands that the README shows must exist: each verb, each flag, each chore.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::artifacts;
use crate::command::Cmd;
use crate::report::Outcome;
use crate::workspace::Workspace;

/// What the README must show: the main job, and everything that the project checks.
const REQUIRED: &[&str] = &["cargo run --release -- run", "cargo xtask test"];

/// One call of the product or of a chore, as the README shows it.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    /// Line of the README, from 1.
    line: usize,
    tool: Tool,
    verb: String,
    /// Long options with their dashes, values cut off.
    flags: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Product,
    Xtask,
}

/// Checks every shown command against the help of the command itself.
///
/// # Errors
/// When the product cannot be built or started.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    let path = workspace.root.join("README.md");
    let text = std::fs::read_to_string(&path).context("cannot read README.md")?;
    let mut wrong: Vec<String> = REQUIRED
        .iter()
        .filter(|needed| !text.contains(**needed))
        .map(|needed| format!("README.md does not show `{needed}`"))
        .collect();
    let product = artifacts::product(workspace)?;
    let mut known = BTreeMap::new();
    for shown in commands(&text) {
        let key = (shown.tool == Tool::Product, shown.verb.clone());
        if !known.contains_key(&key) {
            known.insert(key.clone(), help(&product, shown.tool, &shown.verb)?);
        }
        wrong.extend(judge(&shown, known[&key].as_deref()));
    }
    for line in &wrong {
        println!("{line}");
    }
    let count = wrong.len();
    Ok(match count {
        0 => Outcome::Passed,
        _ => Outcome::Failed(format!("{count} of the README's commands do not work")),
    })
}

fn judge(shown: &Shown, help: Option<&str>) -> Vec<String> {
    let Shown { line, verb, .. } = shown;
    let Some(help) = help else {
        return vec![format!("README.md:{line}: there is no verb `{verb}`")];
    };
    let has = |flag: &str| {
        help.match_indices(flag).any(|(at, _)| {
            let next = help[at + flag.len()..].chars().next();
            !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    };
    let missing = shown.flags.iter().filter(|flag| !has(flag));
    missing.map(|flag| format!("README.md:{line}: `{verb}` has no option `{flag}`")).collect()
}

/// The help text of a verb; `None` when there is no such verb.
fn help(product: &Cmd, tool: Tool, verb: &str) -> Result<Option<String>> {
    if tool == Tool::Xtask {
        let mut cli = crate::Cli::command();
        return Ok(cli.find_subcommand_mut(verb).map(|c| c.render_long_help().to_string()));
    }
    let captured = product.clone().args([verb, "--help"]).capture()?;
    Ok(captured.ok.then_some(captured.stdout))
}

/// Calls of the product and of chores inside the fenced blocks of a Markdown text.
fn commands(markdown: &str) -> Vec<Shown> {
    let (mut fenced, mut found) = (false, Vec::new());
    for (index, line) in markdown.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            found.extend(parse(line).map(|(tool, verb, flags)| Shown {
                line: index + 1,
                tool,
                verb,
                flags,
            }));
        }
    }
    found
}

fn parse(line: &str) -> Option<(Tool, String, Vec<String>)> {
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let ends = |word: &&str| !matches!(*word, "|" | "||" | "&&" | ";" | ">" | "#");
    let words: Vec<&str> = line.split_whitespace().take_while(ends).collect();
    let (tool, rest) = match words.as_slice() {
        ["cargo", "xtask", rest @ ..] => (Tool::Xtask, rest),
        ["cargo", "run", rest @ ..] => {
            let dashes = rest.iter().position(|word| *word == "--")?;
            (Tool::Product, &rest[dashes + 1..])
        }
        [program, rest @ ..] if program.rsplit('/').next() == Some("ssdyno") => {
            (Tool::Product, rest)
        }
        _ => return None,
    };
    let (verb, rest) = rest.split_first().filter(|(verb, _)| !verb.starts_with('-'))?;
    let flag = |word: &&str| {
        let word = word.trim_start_matches('[').trim_end_matches([']', ',']);
        let name = word.split('=').next().unwrap_or(word);
        (name.len() > 2 && name.starts_with("--")).then(|| name.to_owned())
    };
    Some((tool, (*verb).to_owned(), rest.iter().filter_map(flag).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_fences_only() {
        let text = "ssdyno prose\n```sh\n$ cargo run --release -- run --seed 3 [--keep=none] # --no\n\
                    ssdyno show sim:x | grep --color\n./target/release/ssdyno list\n\
                    cargo xtask test\ncargo build --release\n```\ncargo xtask never\n";
        let found = commands(text);
        let verbs: Vec<_> = found.iter().map(|s| (s.line, s.tool, s.verb.as_str())).collect();
        assert_eq!(
            verbs,
            [
                (3, Tool::Product, "run"),
                (4, Tool::Product, "show"),
                (5, Tool::Product, "list"),
                (6, Tool::Xtask, "test")
            ]
        );
        assert_eq!(found[0].flags, ["--seed", "--keep"]);
        assert!(found[1].flags.is_empty());
    }

    #[test]
    fn unknown_verbs_and_flags_are_named_with_their_line() {
        let shown = Shown {
            line: 7,
            tool: Tool::Product,
            verb: "run".to_owned(),
            flags: vec!["--seed".to_owned(), "--for".to_owned()],
        };
        assert_eq!(judge(&shown, None), ["README.md:7: there is no verb `run`"]);
        let found = judge(&shown, Some("  --seed <N>\n  --for-ever"));
        assert_eq!(found, ["README.md:7: `run` has no option `--for`"]);
    }
}
