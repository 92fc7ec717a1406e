//! Runs the commands that documents show, where they need nothing but the program: each must end as the
//! document says, without a panic, print what is shown as its output, and with `--json` print JSON.
//!
//! Runs are cut short ([`shortened`]) unless their output is shown. A document's commands run in its order in a
//! directory of their own, so a later one finds what an earlier one wrote. A command that already ran, and leaves
//! nothing for others, is not run again. Calls of cargo are not run here: examples have their own step, chores run this
//! one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::read::{Shown, Tool};
use super::{Document, documents};
use crate::artifacts;
use crate::command::{Captured, Cmd};
use crate::report::{Counts, Outcome};
use crate::workspace::Workspace;

/// Requests of a shortened run: enough for every part of the report to have something to say.
const MOST_REQUESTS: u64 = 2000;

/// Time on the clock of the device of a shortened profile.
const PROFILE_TIME: &str = "20ms";

/// The same of a map, which refuses less.
const MAP_TIME: &str = "1s";

/// Parts of commands that cannot run here, and why. Each must occur.
const NOT_HERE: &[(&str, &str)] = &[
    ("/dev/", "needs a device"),
    ("iscsi://", "needs a server"),
    ("nbd://", "needs a server"),
    ("nbd+unix://", "needs a server"),
    ("--trace ", "needs traces that are not part of the product"),
    ("ftl.name=ring-log", "needs an FTL that the reader adds"),
    ("prober --listen", "waits for controllers until it is stopped"),
    ("worker --stdio", "talks to the controller that started it"),
    ("worker --listen", "waits for controllers until it is stopped"),
    ("controller invite", "waits for a worker"),
    ("controller revoke", "needs an enrolled worker"),
    ("controller renew", "needs an authority"),
    ("controller list", "needs an enrolled worker"),
    ("controller run", "needs the hosts of its plan"),
    ("papers S4 --hosts", "needs root and nbd-server, and measures for minutes"),
    ("worker enrol", "needs the token of an invitation"),
];

/// Targets that only Linux has.
const LINUX: &[&str] = &["null:", "./scratch", "pci sys", "run --fio"];

/// Files that a reader would bring, by the names that documents give them. Each must occur.
const STAND_INS: &[(&str, &str)] = &[
    (
        "web.csv.gz",
        "time_us,op,offset_bytes,length_bytes\n0,read,0,4096\n90,write,8192,8192\n250,read,1048576,4096\n",
    ),
    (
        "io.log",
        "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x read 0 4096\n/dev/x write 8192 8192\n/dev/x close\n",
    ),
    ("plain.csv", "0,x,read,0,8\n1,x,write,8,16\n"),
    (
        "io_traces.csv",
        "419,W,8192,16384,1577808144360767\n725,R,359104,4096,1577808144360813\n3,R,0,512,1577808144360900\n",
    ),
    (
        "saved.txt",
        "NVME Identify Controller:\nvid : 0x1b36\nmn : A drive\nmdts : 5\nver : 0x10300\n\
         ps 0 : mp:9.00W operational enlat:0 exlat:0 rrt:0 rrl:0\n",
    ),
    ("database.fio", "[reads]\nfilename=database\nsize=1m\nrw=randread\nnumber_ios=100\n"),
    ("database", ""),
];

/// Size of the stand-in for what a job file reads, in bytes.
const DATABASE: u64 = 1 << 20;

/// How a command is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it is shown: for people.
    Text,
    /// With `--json`.
    Json,
}

/// The outcome of a command.
struct Tried {
    /// Document and line.
    place: String,
    /// As it was run, or as it is shown where it was not.
    command: String,
    end: End,
}

enum End {
    Well(Duration),
    /// What is wrong.
    Badly(String),
    /// Why it did not run.
    Skipped(String),
}

/// Runs them all, as text and as JSON side by side.
///
/// # Errors
/// When a document cannot be read, the product not be built or started, or a directory not be made.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    let documents = documents(workspace)?;
    let product = artifacts::product(workspace)?;
    let root = workspace.target_directory.join("commands-run");
    let all = |form, name| every(&documents, &product, &root.join(name), form);
    let (text, json) = std::thread::scope(|scope| {
        let json = scope.spawn(|| all(Form::Json, "json"));
        (all(Form::Text, "text"), json.join())
    });
    let mut tried = text?;
    let Ok(json) = json else { anyhow::bail!("the runs with --json were not finished") };
    // What did not run did not run in either form.
    tried.extend(json?.into_iter().filter(|tried| !matches!(tried.end, End::Skipped(_))));
    let mut counts = Counts::default();
    for Tried { place, command, end } in &tried {
        let (count, what) = match end {
            End::Well(took) => (Counts::ONE_PASSED, format!("{:.1} s", took.as_secs_f64())),
            End::Badly(what) => (Counts::ONE_FAILED, format!("FAILED: {what}")),
            End::Skipped(why) => (Counts::ONE_SKIPPED, format!("skipped: {why}")),
        };
        counts += count;
        println!("{place}: {command}: {what}");
    }
    let stale = stale(&documents);
    for line in &stale {
        println!("{line}");
    }
    Ok(match stale.len() {
        _ if counts.passed + counts.failed == 0 => Outcome::Failed("no command was run".to_owned()),
        0 => Outcome::Tests { ok: counts.failed == 0, counts },
        n => Outcome::Failed(format!("{n} rules for commands that no document shows any more")),
    })
}

/// Runs the commands of all documents in one form.
fn every(documents: &[Document], product: &Cmd, root: &Path, form: Form) -> Result<Vec<Tried>> {
    let mut tried = Vec::new();
    let mut before = BTreeMap::new();
    for Document { name, shown, .. } in documents {
        let directory = root.join(name.replace('/', "-"));
        fresh(&directory).with_context(|| format!("cannot prepare {}", directory.display()))?;
        let product = product.clone().dir(&directory);
        for shown in
            shown.iter().filter(|shown| shown.verb().is_some() && shown.tool == Tool::Product)
        {
            let place = format!("{name}:{}", shown.line);
            let again = before.get(&shown.words).map(|place| format!("runs at {place}"));
            tried.push(match why_not(shown).or(again) {
                Some(why) => {
                    let command = Cmd::new("ssdyno").args(shown.words.clone()).to_string();
                    Tried { place, command, end: End::Skipped(why) }
                }
                None => {
                    if !leaves_something(shown) {
                        before.insert(shown.words.clone(), place.clone());
                    }
                    attempt(shown, place, &product, &directory, form)?
                }
            });
        }
    }
    Ok(tried)
}

/// Whether a later command may use what this one writes, or its output is shown.
fn leaves_something(shown: &Shown) -> bool {
    let named = shown.values("--name").next().is_some();
    named || shown.into.is_some() || !shown.prints.is_empty()
}

/// An empty directory but for the stand-ins.
fn fresh(directory: &Path) -> std::io::Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    std::fs::create_dir_all(directory)?;
    for (name, text) in STAND_INS {
        std::fs::write(directory.join(name), text)?;
    }
    std::fs::File::options().write(true).open(directory.join("database"))?.set_len(DATABASE)
}

fn attempt(
    shown: &Shown,
    place: String,
    product: &Cmd,
    directory: &Path,
    form: Form,
) -> Result<Tried> {
    let mut args = shortened(shown);
    let start = Instant::now();
    // What goes into a file is for the next command, whatever the form.
    if let Some(name) = &shown.into {
        let made = product.clone().args(args.clone()).capture()?;
        std::fs::write(directory.join(name), made.stdout)?;
    }
    if form == Form::Json && !args.iter().any(|arg| arg == "--json") {
        args.push("--json".to_owned());
    }
    let cmd = product.clone().args(args.clone());
    let captured = cmd.capture()?;
    let end = match complaint(shown, &args, &captured) {
        None => End::Well(start.elapsed()),
        Some(what) => End::Badly(what),
    };
    let command = Cmd::new("ssdyno").args(args).to_string();
    Ok(Tried { place, command, end })
}

/// Why a command of the product is not run; `None`: it is.
fn why_not(shown: &Shown) -> Option<String> {
    if shown.span && shown.words.len() == 1 {
        return Some("names the verb".to_owned());
    }
    if let Some(word) = shown.words.iter().find_map(|word| placeholder(word)) {
        return Some(format!("`{word}` is the reader's"));
    }
    if shown.words.first().is_some_and(|verb| verb == "ui") {
        return Some("serves a page until it is stopped".to_owned());
    }
    let text = shown.words.join(" ");
    let found = NOT_HERE.iter().find(|(part, _)| text.contains(part)).map(|(_, why)| *why);
    let elsewhere = !cfg!(target_os = "linux") && LINUX.iter().any(|part| text.contains(part));
    found.or_else(|| elsewhere.then_some("needs Linux")).map(str::to_owned)
}

/// The part of a word that stands for something else: capitals alone (FILE, N), dots or brackets.
fn placeholder(word: &str) -> Option<&str> {
    if word.contains('…') || word.starts_with(['[', '<']) {
        return Some(word);
    }
    // A word with capitals in a value, such as a serial number, has figures or small letters, too.
    let capitals = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase());
    word.split(|c: char| !c.is_ascii_alphanumeric()).find(capitals)
}

/// The arguments, so that a run takes a second: milliseconds for seconds, and few requests.
fn shortened(shown: &Shown) -> Vec<String> {
    let mut args = shown.words.clone();
    if shown.verb() == Some("profile") && shown.prints.is_empty() {
        let is_map = args.iter().any(|arg| arg == "--map");
        let time = if is_map { MAP_TIME } else { PROFILE_TIME };
        match args.iter().position(|arg| arg == "--time") {
            Some(at) if at + 1 < args.len() => args[at + 1] = time.to_owned(),
            _ => args.extend(["--time", time].map(str::to_owned)),
        }
        return args;
    }
    let loads = matches!(shown.verb(), Some("run" | "compare" | "papers"));
    if !loads || !shown.prints.is_empty() {
        return args;
    }
    for at in 1..args.len() {
        match args[at - 1].as_str() {
            "--requests" if args[at].parse().is_ok_and(|n: u64| n > MOST_REQUESTS) => {
                args[at] = MOST_REQUESTS.to_string();
            }
            "-t" | "--for" | "--timeline-from" => {
                // Long enough for the ramp-up of 100 requests of the workload `latency`.
                if let Some(Ok(n)) = args[at].strip_suffix('s').map(str::parse::<u64>) {
                    args[at] = format!("{}ms", 50 * n);
                }
            }
            _ => {}
        }
    }
    // Job files, specs and --until have an end of their own, which is what is shown.
    let ends = ["--requests", "-t", "--for", "--until", "--fio", "--spec"];
    if !args.iter().any(|arg| ends.contains(&arg.as_str())) {
        args.extend(["--requests".to_owned(), MOST_REQUESTS.to_string()]);
    }
    args
}

/// The error in the end of a command.
fn complaint(shown: &Shown, args: &[String], captured: &Captured) -> Option<String> {
    let Captured { stdout, stderr, code, .. } = captured;
    let fails = shown.prints.iter().any(|line| line.starts_with("error: "));
    if *code != Some(i32::from(fails)) || stderr.contains("panicked at") {
        let code = code.map_or("a signal".to_owned(), |code| format!("code {code}"));
        // With --json the error is the object.
        let told = if stderr.is_empty() { stdout } else { stderr };
        return Some(format!("ended with {code}:\n{told}"));
    }
    if args.iter().any(|arg| arg == "--json") {
        return match serde_json::from_str::<Value>(stdout) {
            Ok(Value::Object(_)) => None,
            Ok(_) => Some("printed JSON that is not an object".to_owned()),
            Err(error) => Some(format!("printed no JSON: {error}")),
        };
    }
    let missing = not_printed(&shown.prints, &format!("{stdout}{stderr}"))?;
    Some(format!("does not print the line `{missing}`, or not where it is shown"))
}

/// The first of the shown lines that the output does not have, or not in this order. A line may go on.
fn not_printed<'a>(prints: &'a [String], output: &str) -> Option<&'a str> {
    let mut printed = output.lines();
    let shown = prints.iter().map(String::as_str).filter(|line| !matches!(line.trim(), "" | "…"));
    shown.into_iter().find(|line| !printed.by_ref().any(|printed| printed.starts_with(line)))
}

/// Rules that apply to no command.
fn stale(documents: &[Document]) -> Vec<String> {
    let texts: Vec<String> = documents
        .iter()
        .flat_map(|document| &document.shown)
        .filter(|shown| shown.tool == Tool::Product)
        .map(|shown| shown.words.join(" "))
        .collect();
    let rules = NOT_HERE.iter().map(|(part, _)| *part).chain(LINUX.iter().copied());
    // The file that the stand-in for a job file reads is named there.
    let files = STAND_INS.iter().map(|(name, _)| *name);
    let unused = rules.chain(files).filter(|part| !texts.iter().any(|text| text.contains(part)));
    unused.map(|part| format!("xtask/src/shown/trial.rs: no command has `{part}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::read::commands;
    use super::*;

    fn block(text: &str) -> Shown {
        commands(&format!("```sh\n{text}\n```\n")).remove(0)
    }

    fn ended(code: i32, stdout: &str, stderr: &str) -> Captured {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        Captured { ok: code == 0, code: Some(code), stdout, stderr }
    }

    #[test]
    fn placeholders_devices_and_names_of_verbs_are_not_run() {
        for text in [
            "ssdyno verify FILE --write",
            "ssdyno run sim:x --requests N",
            "ssdyno run sim:x --set KEY=VALUE",
            "ssdyno run sim:x --set ftl.name=…",
            "ssdyno run sim:x [--keep none]",
            "ssdyno run /dev/nvme0n1",
            "ssdyno papers S3 --trace iozone=a.gz",
        ] {
            assert!(why_not(&block(text)).is_some(), "{text}");
        }
        for text in ["ssdyno list", "ssdyno papers S3/table6", "ssdyno run ./s --size 64MiB"] {
            assert_eq!(why_not(&block(text)).filter(|_| cfg!(target_os = "linux")), None, "{text}");
        }
        assert_eq!(why_not(&commands("`ssdyno papers`")[0]).as_deref(), Some("names the verb"));
        assert_eq!(why_not(&commands("`ssdyno papers S3`")[0]), None);
    }

    #[test]
    fn runs_are_cut_short_unless_their_output_is_shown() {
        let short = |text: &str| shortened(&block(text)).join(" ");
        assert_eq!(short("ssdyno run sim:x --requests 20000"), "run sim:x --requests 2000");
        assert_eq!(short("ssdyno run sim:x --requests 20"), "run sim:x --requests 20");
        assert_eq!(short("ssdyno run sim:x"), "run sim:x --requests 2000");
        let timeline = "run --for 5s --timeline t --timeline-from 2s";
        assert_eq!(
            short(&format!("ssdyno {timeline}")),
            timeline.replace("5s", "250ms").replace("2s", "100ms")
        );
        assert_eq!(short("ssdyno profile sim:x"), "profile sim:x --time 20ms");
        assert_eq!(short("ssdyno profile sim:x --time 5s"), "profile sim:x --time 20ms");
        assert_eq!(short("ssdyno papers S3"), "papers S3 --requests 2000");
        for whole in ["pts sim:x --quick", "run sim:x --until 1%", "show sim:x", "run --fio a.fio"]
        {
            assert_eq!(short(&format!("ssdyno {whole}")), whole);
        }
        assert_eq!(short("$ ssdyno run sim:x --for 1s\nIOPS  1"), "run sim:x --for 1s");
    }

    #[test]
    fn a_command_ends_as_it_is_shown() {
        let fine = block("ssdyno list");
        let judge = |shown: &Shown, captured: &Captured| complaint(shown, &shown.words, captured);
        assert_eq!(judge(&fine, &ended(0, "a\n", "")), None);
        assert!(judge(&fine, &ended(101, "", "thread 'main' panicked at x")).is_some());
        assert!(judge(&fine, &ended(0, "", "thread 'job' panicked at x")).is_some());
        let fails = block("$ ssdyno run\nIOPS  12\n…\nerror: it failed\n");
        assert_eq!(judge(&fails, &ended(1, "x\nIOPS  12.3\ny\n", "error: it failed\n")), None);
        assert!(judge(&fails, &ended(0, "IOPS  12\n", "error: it failed\n")).is_some());
        assert!(judge(&fails, &ended(1, "IOPS  13\n", "error: it failed\n")).is_some());
        assert!(judge(&fails, &ended(1, "error: it failed\nIOPS  12\n", "")).is_some());
        let json = block("ssdyno list --json");
        assert_eq!(judge(&json, &ended(0, "{\"a\": 1}\n", "noise")), None);
        for wrong in ["[]", "{}{}", "{", "x\n{}"] {
            assert!(judge(&json, &ended(0, wrong, "")).is_some(), "{wrong}");
        }
    }

    #[test]
    fn commands_of_the_documents_are_run_and_no_rule_is_stale() {
        let documents = documents(&Workspace::load().unwrap()).unwrap();
        assert_eq!(stale(&documents), Vec::<String>::new());
        let all = documents.iter().flat_map(|document| &document.shown);
        let run =
            all.filter(|s| s.tool == Tool::Product && s.verb().is_some() && why_not(s).is_none());
        assert!(run.count() > 0);
    }
}
