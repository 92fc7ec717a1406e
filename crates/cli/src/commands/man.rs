//! `ssdyno man`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use serde_json::json;
use ssdyno_session::{Failure, FailureKind};

use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory for one page per verb, such as ssdyno-controller-invite.1, and a page for the program
    /// [default: print the page of the program].
    pub(crate) directory: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs, mut program: Command, output: Output) -> Result<(), Failure> {
    program.build();
    let Some(directory) = &args.directory else {
        let page = page(program)?;
        return output.either(|| page.clone(), || json!({ "page": page }));
    };
    fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    let mut files = Vec::new();
    write_all(directory, "ssdyno", &program, &mut files)?;
    output.either(|| files.join("\n") + "\n", || json!({ "files": files }))
}

/// Writes the page of `command` and those of the verbs below it, which the page refers to by these names.
fn write_all(
    directory: &Path,
    name: &str,
    command: &Command,
    files: &mut Vec<String>,
) -> Result<(), Failure> {
    files.push(write(directory, &format!("{name}.1"), &page(command.clone())?)?);
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        write_all(directory, &format!("{name}-{}", verb.get_name()), verb, files)?;
    }
    Ok(())
}

fn page(command: Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| {
        Failure::new(FailureKind::Failed, format!("cannot create the manual page: {error}"))
    })?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write(directory: &Path, name: &str, page: &str) -> Result<String, Failure> {
    let path = directory.join(name);
    // A page of another version is replaced, as an installation does; anything else is not ours.
    let is_ours = |text: String| text.contains(".TH ssdyno");
    if path.exists() && !fs::read_to_string(&path).is_ok_and(is_ours) {
        let message = format!("{} exists and is not a manual page of ssdyno", path.display());
        return Err(
            Failure::usage(message).with_help("choose another directory, or remove the file")
        );
    }
    fs::write(&path, page).map_err(|error| unwritable(&path, &error))?;
    Ok(path.display().to_string())
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Unwritable, format!("cannot write {}: {error}", path.display()))
        .with_help("choose a directory that you may write to")
}
