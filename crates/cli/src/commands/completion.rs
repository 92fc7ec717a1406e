//! `ssdyno completion`.

use std::collections::BTreeSet;

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;
use ssdyno_session::reference::{KeyEntry, reference};
use ssdyno_session::{CatalogueEntry, Failure, catalogue};

use crate::output::Output;

/// Bash takes `sim:NAME` and `KEY=VALUE` apart before it asks: this puts them together, and its answers apart again.
const WHOLE_WORDS: &str = include_str!("completion.bash");

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell. The script for bash completes presets, workloads, keys and values of --set, and papers.
    /// The scripts for other shells complete keys and values of --set, and papers.
    pub(crate) shell: Shell,
}

pub(crate) fn run(args: &CompletionArgs, program: Command, output: Output) -> Result<(), Failure> {
    let script = match args.shell {
        Shell::Bash => bash(program)?,
        shell => {
            let papers = papers()?;
            let only = |id: &str| match id {
                "set" => Some(settings()),
                "selector" => Some(papers.clone()),
                // A script of these shells would no longer offer files beside the names.
                _ => None,
            };
            generated(shell, offering(program, &only))
        }
    };
    output
        .either(|| script.clone(), || json!({ "shell": args.shell.to_string(), "script": script }))
}

fn generated(shell: Shell, mut program: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "ssdyno", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Each list of values is a variable: verbs share them, and the script stays small.
fn bash(program: Command) -> Result<String, Failure> {
    let names = |of: Vec<CatalogueEntry>| of.into_iter().map(|entry| entry.name).collect();
    let lists: [(&str, &[&str], Vec<String>); 6] = [
        ("_SSDYNO_TARGETS", &["target", "sides"], names(catalogue::devices())),
        ("_SSDYNO_WORKLOADS", &["workload"], names(catalogue::workloads())),
        ("_SSDYNO_SETTINGS", &["set"], settings()),
        ("_SSDYNO_PAPERS", &["selector"], papers()?),
        ("_SSDYNO_HOSTS", &["host"], names(catalogue::hosts())),
        ("_SSDYNO_NETWORKS", &["network"], names(catalogue::networks())),
    ];
    let stand_in = |id: &str| {
        let list = lists.iter().find(|(_, ids, _)| ids.contains(&id));
        list.map(|(variable, _, _)| vec![(*variable).to_owned()])
    };
    let mut script = generated(Shell::Bash, offering(program, &stand_in));
    let mut values = String::new();
    for (variable, _, list) in &lists {
        script = script.replace(variable, &format!("${{{variable}}}"));
        values.push_str(&format!("{variable}='{}'\n", list.join(" ")));
    }
    let script = script.replace("complete -F _ssdyno ", "complete -F _ssdyno_whole_words ");
    Ok(format!("{values}{WHOLE_WORDS}{script}"))
}

/// `program` with the values that `of` knows for its options, by their ids. Only for a script: a parser takes others, too.
fn offering(program: Command, of: &dyn Fn(&str) -> Option<Vec<String>>) -> Command {
    let ids: Vec<String> =
        program.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    let verbs: Vec<String> =
        program.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let mut program = program;
    for id in ids {
        let Some(values) = of(&id) else { continue };
        // The definitions of options live as long as the program, which ends when the script is printed.
        let values: Vec<&'static str> =
            values.into_iter().map(|value| &*String::leak(value)).collect();
        let parser = PossibleValuesParser::new(values);
        program = program.mut_arg(id, |argument| argument.value_parser(parser));
    }
    for verb in verbs {
        let Some(known) = program.find_subcommand(&verb).cloned() else { continue };
        let known = offering(known, of);
        program = program.mut_subcommand(verb, |_| known);
    }
    program
}

/// What `--set` takes: each key with its `=`, and with each of its words.
fn settings() -> Vec<String> {
    const OTHERS: [&str; 3] = ["spec", "result", "host"];
    let can_be_set = |entry: &&KeyEntry| {
        let is_of_device = |file: &String| !OTHERS.contains(&file.as_str());
        !entry.key.contains("[]") && entry.files.iter().any(is_of_device) && entry.form != "a table"
    };
    let each = |entry: &KeyEntry| {
        let words = entry.words.iter().map(|word| word.word.clone());
        let switch = if entry.form == "true or false" { &["true", "false"][..] } else { &[] };
        let words = words.chain(switch.iter().map(|word| (*word).to_owned()));
        let values: Vec<String> = words.map(|word| format!("{}={word}", entry.key)).collect();
        [vec![format!("{}=", entry.key)], values].concat()
    };
    let all: BTreeSet<String> = reference().iter().filter(can_be_set).flat_map(each).collect();
    // A word with a blank or a quotation mark would be several, or end the list.
    all.into_iter().filter(|word| !word.contains([' ', '\'', '"', '$', '`'])).collect()
}

/// Papers and their parts, as `list papers` has them.
fn papers() -> Result<Vec<String>, Failure> {
    Ok(super::list::papers()?.into_iter().map(|entry| entry.name).collect())
}
