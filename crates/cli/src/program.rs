//! This program, as the provenance of a result names it.

use ssdyno_session::{FileMark, ProgramIdentity, is_secret, without_secrets};

use crate::replay::quoted;

/// Options whose value is a serial number.
const SERIALS: [&str; 1] = ["--destroy"];

/// The replacement for a hidden word.
const LEFT_OUT: &str = "***";

/// The commit from which it was built, where that is known.
pub(crate) fn commit() -> Option<String> {
    option_env!("SSDYNO_COMMIT").map(str::to_owned)
}

/// What tells this program from every other build of it: version, commit, and the SHA-256 of its file, since a commit says
/// nothing of a changed source. `None` where the file cannot be read.
pub(crate) fn build() -> Option<String> {
    let file = FileMark::of(&std::env::current_exe().ok()?)?;
    let commit = commit().unwrap_or_default();
    Some(format!("{} {commit} {}", env!("CARGO_PKG_VERSION"), file.sha256))
}

/// This program and what was typed.
pub(crate) fn identity() -> ProgramIdentity {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    ProgramIdentity {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
        command: Some(command(words)),
    }
}

/// The words after the name of the program as a shell would read them, without passwords and serial numbers. The place of the
/// program is of no use elsewhere.
fn command(words: impl Iterator<Item = String>) -> String {
    let mut text = "ssdyno".to_owned();
    let mut is_hidden = false;
    for word in words {
        let name = word.split('=').next().unwrap_or_default();
        let is_option = word.starts_with("--");
        let hides = is_option && (SERIALS.contains(&name) || is_secret(name));
        let told = match (std::mem::take(&mut is_hidden), word.contains('=')) {
            (true, _) => LEFT_OUT.to_owned(),
            (false, true) if hides => format!("{name}={LEFT_OUT}"),
            (false, false) if hides => {
                is_hidden = true;
                word
            }
            (false, _) => without_secrets(&word),
        };
        text.push(' ');
        text.push_str(&quoted(&told));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_without_secrets() {
        let told = |line: &str| command(line.split('|').map(str::to_owned));
        assert_eq!(
            told("run|/dev/x|--set|workload.depth=4"),
            "ssdyno run /dev/x --set workload.depth=4"
        );
        assert_eq!(told("run|a b"), "ssdyno run 'a b'");
        let line = told("run|nbd://me:hunter2@host/x|--destroy|S3RIAL|--destroy=S3RIAL|--seed|1");
        assert_eq!(line, "ssdyno run 'nbd://***@host/x' --destroy '***' '--destroy=***' --seed 1");
    }

    #[test]
    fn the_commit_is_a_hash_or_unknown() {
        assert!(commit().is_none_or(|hash| hash.len() >= 40), "{:?}", commit());
    }
}
