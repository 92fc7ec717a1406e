//! Where a result comes from: asked of the system right before a run.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ssdyno_figures::{Provenance, RunResult, rfc3339};
use ssdyno_prober::{MachineOrigin, StorageOrigin};

use crate::prepare::{Prepared, Target};

/// The replacement for a secret.
const SECRET: &str = "***";

/// Words in the names of values that are secret.
const SECRET_NAMES: [&str; 7] =
    ["password", "passwd", "pass", "token", "secret", "apikey", "api_key"];

/// The program that makes a run, as its front end says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgramIdentity {
    /// Its version.
    pub version: String,
    /// The commit of its source, if it was built from a repository.
    pub commit: Option<String>,
    /// The typed command, if there is one. Passwords and tokens are taken out by [`without_secrets`], serial numbers by
    /// whoever knows which words are some.
    pub command: Option<String>,
}

impl ProgramIdentity {
    /// The program, and that a run starts now. Nothing of the machine.
    pub fn provenance(&self) -> Provenance {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Provenance {
            version: self.version.clone(),
            commit: self.commit.clone(),
            command: self.command.clone(),
            started: rfc3339(since_1970.as_secs()),
            ..Provenance::default()
        }
    }
}

impl Prepared {
    /// The provenance of this run if it starts now, by `program`: some small files of `/proc` and `/sys` are read, and the
    /// extents of a real file counted.
    pub fn provenance(&self, program: &ProgramIdentity) -> Provenance {
        let root = Path::new("/");
        let targets = match &self.run {
            Target::Simulated(_) => Vec::new(),
            Target::Real(real) => {
                let more = real.run.more.iter().map(|(name, _)| name);
                std::iter::once(&real.run.target).chain(more).collect()
            }
        };
        Provenance {
            machine: Some(MachineOrigin::read(root)),
            storage: targets.iter().filter_map(|name| StorageOrigin::of(root, name)).collect(),
            ..program.provenance()
        }
    }
}

/// Puts `provenance`, found before the run, into its `result`. A file that the run itself made is described now.
pub fn record_provenance(result: &mut RunResult, mut provenance: Provenance) {
    let is_real = result.simulated_requests_per_wall_second.is_none();
    if is_real && provenance.machine.is_some() && provenance.storage.is_empty() {
        provenance.storage.extend(StorageOrigin::of(Path::new("/"), &result.target));
    }
    result.provenance = Some(provenance);
}

/// `word` of a command without the secrets in it: user and password of an address (`nbd://me:secret@host`), and the values of
/// keys that are called password, token and the like (`--token=…`, `?password=…`).
pub fn without_secrets(word: &str) -> String {
    let mut text = without_user(word);
    let mut from = 0;
    // Each `name=value` up to the next separator.
    while let Some(at) = text[from..].find('=').map(|at| from + at) {
        let name =
            text[..at].rsplit(['?', '&', ';', ',', ' ', '{', '"']).next().unwrap_or_default();
        let end = text[at + 1..].find(['&', ';', ',', ' ', '}']).map_or(text.len(), |n| at + 1 + n);
        if is_secret(name) {
            text.replace_range(at + 1..end, SECRET);
            from = at + 1 + SECRET.len();
        } else {
            from = at + 1;
        }
    }
    text
}

/// Whether the value called `name` is private.
pub fn is_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').replace('-', "_").to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    // `token_file` is a path.
    SECRET_NAMES.iter().any(|secret| last == *secret || last.ends_with(&format!("_{secret}")))
}

fn without_user(word: &str) -> String {
    let mut text = word.to_owned();
    let mut from = 0;
    while let Some(at) = text[from..].find("://").map(|at| from + at + 3) {
        let end = text[at..].find(['/', '?', '#', ' ', ',']).map_or(text.len(), |n| at + n);
        // A password may have an `@`, a host has none.
        if let Some(user) = text[at..end].rfind('@') {
            text.replace_range(at..at + user, SECRET);
        }
        from = at;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunSpec, Unattended, resolve};

    #[test]
    fn secrets_are_taken_out_of_words() {
        for (word, told) in [
            ("nbd://host/export", "nbd://host/export"),
            ("nbd://me:hun@ter2@host:10809/export", "nbd://***@host:10809/export"),
            ("a=nbd://me:x@host,b=nbd://you:y@host", "a=nbd://***@host,b=nbd://***@host"),
            ("--token=abc", "--token=***"),
            ("nbd://host/a?password=x&tls=1", "nbd://host/a?password=***&tls=1"),
            ("--set=real.api-key=x", "--set=real.api-key=***"),
            ("--token-file=/a/b", "--token-file=/a/b"),
            ("workload.depth=3", "workload.depth=3"),
            ("user@host", "user@host"),
            ("größe=ü://ä@ö", "größe=ü://***@ö"),
        ] {
            assert_eq!(without_secrets(word), told);
        }
        assert!(is_secret("--token") && !is_secret("--bypass") && !is_secret("--seed"));
    }

    #[test]
    fn a_run_knows_its_machine_and_its_file() {
        let program = ProgramIdentity { version: "1.2".to_owned(), ..ProgramIdentity::default() };
        let simulated = resolve(&RunSpec::default(), &mut Unattended).unwrap();
        let told = simulated.provenance(&program);
        assert_eq!((told.version.as_str(), told.commit, told.command), ("1.2", None, None));
        assert!(told.machine.is_some() && told.storage.is_empty());
        assert!(told.started.ends_with('Z') && told.started.len() == 20, "{}", told.started);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_real_run_has_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let spec = RunSpec { target: Some(path.display().to_string()), ..RunSpec::default() };
        let told = resolve(&spec, &mut Unattended).unwrap().provenance(&ProgramIdentity::default());
        let file = told.storage[0].file.as_ref().unwrap();
        assert_eq!(file.size_bytes, 1 << 20);
    }
}
