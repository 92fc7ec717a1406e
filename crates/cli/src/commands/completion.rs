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
    /// The shell. The scripts for bash, zsh and fish complete presets, workloads, keys and values of --set, and
    /// papers. The scripts for other shells complete keys and values of --set, and papers.
    pub(crate) shell: Shell,
}

pub(crate) fn run(args: &CompletionArgs, program: Command, output: Output) -> Result<(), Failure> {
    let lists = lists()?;
    let script = match args.shell {
        Shell::Bash => bash(program, &lists),
        Shell::Zsh => zsh(program, &lists),
        Shell::Fish => fish(program, &lists),
        shell => {
            // A script of these shells would no longer offer files beside the names.
            let only = |id: &str| {
                let list = lists.iter().find(|list| !list.or_a_file && list.ids.contains(&id));
                list.map(|list| list.values.clone())
            };
            generated(shell, offering(program, &only))
        }
    };
    output
        .either(|| script.clone(), || json!({ "shell": args.shell.to_string(), "script": script }))
}

/// Values of options, and where they are offered.
struct List {
    /// Its variable or function in a script. Verbs share it, and the script stays small.
    name: &'static str,
    /// Options and arguments that take the values, by the identifiers of the parser.
    ids: &'static [&'static str],
    values: Vec<String>,
    /// Whether the options take files, too.
    or_a_file: bool,
}

fn lists() -> Result<[List; 6], Failure> {
    let names = |of: Vec<CatalogueEntry>| of.into_iter().map(|entry| entry.name).collect();
    let list = |name, ids, values, or_a_file| List { name, ids, values, or_a_file };
    Ok([
        list("_ssdyno_targets", &["target", "sides"], names(catalogue::devices()), true),
        list("_ssdyno_workloads", &["workload"], names(catalogue::workloads()), true),
        list("_ssdyno_settings", &["set"], settings(), false),
        list("_ssdyno_papers", &["selector"], papers()?, false),
        list("_ssdyno_hosts", &["host"], names(catalogue::hosts()), true),
        list("_ssdyno_networks", &["network"], names(catalogue::networks()), true),
    ])
}

fn generated(shell: Shell, mut program: Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "ssdyno", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The script of `shell` with the name of its list instead of each list.
fn with_names(shell: Shell, program: Command, lists: &[List]) -> String {
    let stand_in = |id: &str| {
        let list = lists.iter().find(|list| list.ids.contains(&id));
        list.map(|list| vec![list.name.to_owned()])
    };
    generated(shell, offering(program, &stand_in))
}

fn bash(program: Command, lists: &[List]) -> String {
    let mut script = with_names(Shell::Bash, program, lists);
    let mut values = String::new();
    for List { name, values: list, .. } in lists {
        script = script.replace(name, &format!("${{{name}}}"));
        values.push_str(&format!("{name}='{}'\n", list.join(" ")));
    }
    let script = script.replace("complete -F _ssdyno ", "complete -F _ssdyno_whole_words ");
    format!("{values}{WHOLE_WORDS}{script}")
}

fn zsh(program: Command, lists: &[List]) -> String {
    let mut script = with_names(Shell::Zsh, program, lists);
    let mut functions = String::new();
    for List { name, values, or_a_file, .. } in lists {
        // In brackets zsh has values themselves, without brackets the function that gives them.
        script = script.replace(&format!(":({name})"), &format!(":{name}"));
        // A key waits for its value: no blank behind it.
        let (keys, whole): (Vec<&str>, Vec<&str>) =
            values.iter().map(String::as_str).partition(|value| value.ends_with('='));
        functions.push_str(&format!("{name}() {{\n"));
        for (option, words) in [("-S ''", keys), ("", whole)] {
            if !words.is_empty() {
                functions.push_str(&format!("    compadd {option} -- {}\n", words.join(" ")));
            }
        }
        functions.push_str(if *or_a_file { "    _files\n}\n" } else { "}\n" });
    }
    // The first line says which command the file completes.
    let (first, rest) = script.split_once('\n').unwrap_or((&script, ""));
    format!("{first}\n{functions}{rest}")
}

fn fish(program: Command, lists: &[List]) -> String {
    // The generator leaves out arguments without a dash.
    let mut arguments = String::new();
    for verb in program.get_subcommands() {
        let taken = verb.get_positionals().filter_map(|argument| {
            lists.iter().find(|list| list.ids.contains(&argument.get_id().as_str()))
        });
        for List { name, or_a_file, .. } in taken {
            let files = if *or_a_file { "-F" } else { "-f" };
            arguments.push_str(&format!(
                "complete -c ssdyno -n \"__fish_ssdyno_using_subcommand {}\" {files} -a \"({name})\"\n",
                verb.get_name()
            ));
        }
    }
    let mut script = with_names(Shell::Fish, program, lists);
    let mut functions = String::new();
    for List { name, values, or_a_file, .. } in lists {
        let files = if *or_a_file { "-F" } else { "-f" };
        let generated = format!("-f -a \"{name}\\t''\"");
        script = script.replace(&generated, &format!("{files} -a \"({name})\""));
        functions
            .push_str(&format!("function {name}\n    printf '%s\\n' {}\nend\n", values.join(" ")));
    }
    format!("{functions}{script}{arguments}")
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

/// The values of `--set`: each key with its `=`, and with each of its words.
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
