//! Programs of the system: whether they are there, and running them.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ssdyno_session::Failure;

/// Where programs of the administrator lie, whatever the path of the user is.
const SYSTEM_PLACES: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Programs that are needed, and the Debian package of each.
const NEEDED: [(&str, &str); 3] =
    [("ip", "iproute2"), ("tc", "iproute2"), ("nbd-server", "nbd-server")];

/// Why the experiments cannot be carried out.
pub(super) fn refused(problem: impl Into<String>, help: impl Into<String>) -> Failure {
    Failure::failed(problem).with_help(help)
}

/// The programs of the experiments.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub(super) ip: PathBuf,
    pub(super) tc: PathBuf,
    pub(super) nbd_server: PathBuf,
    /// tgtd and tgtadm, of the package tgt, where both are installed.
    pub(super) tgt: Option<(PathBuf, PathBuf)>,
}

impl Tools {
    /// Looks for them, before anything is made.
    ///
    /// # Errors
    /// The user is not root, or programs are missing: all of that in one error.
    pub(super) fn find() -> Result<Tools, Failure> {
        Tools::found_by(rustix::process::geteuid().is_root(), &in_path)
    }

    fn found_by(is_root: bool, find: &dyn Fn(&str) -> Option<PathBuf>) -> Result<Tools, Failure> {
        let found = NEEDED.map(|(name, _)| find(name));
        if let (true, [Some(ip), Some(tc), Some(nbd_server)]) = (is_root, found.clone()) {
            let tgt = find("tgtd").zip(find("tgtadm"));
            return Ok(Tools { ip, tc, nbd_server, tgt });
        }
        // All missing programs are collected into one error. One error per attempt would make the
        // user install the packages one by one.
        let absent = NEEDED.iter().zip(&found).filter(|(_, place)| place.is_none());
        let (mut names, mut packages) = (Vec::new(), Vec::new());
        for ((name, package), _) in absent {
            names.push(format!("`{name}`"));
            if !packages.contains(package) {
                packages.push(*package);
            }
        }
        let (mut problems, mut help) = (Vec::new(), Vec::new());
        if !is_root {
            problems.push("network namespaces need root".to_owned());
            help.push("run it with sudo".to_owned());
        }
        if !names.is_empty() {
            problems.push(format!("there is no {}", names.join(", ")));
            help.push(format!("`apt-get install {}`", packages.join(" ")));
        }
        Err(refused(problems.join(", and "), help.join("; ")))
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The PATH of a user or a service can lack /usr/sbin. Debian installs `tc` there, so it would
    // appear to be missing.
    let places = std::env::split_paths(&path).chain(SYSTEM_PLACES.map(PathBuf::from));
    places.map(|place| place.join(name)).find(|program| program.is_file())
}

/// Runs `program` to its end; what it prints to standard output.
///
/// # Errors
/// It cannot be started, or fails: with what it says.
pub(super) fn run<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Result<String, Failure> {
    let words = || {
        let words = arguments.iter().map(|word| word.as_ref().to_string_lossy().into_owned());
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
    };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        // Ctrl-C is for this program, which removes what was made.
        .process_group(0)
        .output()
        .map_err(|error| Failure::failed(format!("`{}` cannot be started: {error}", words())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let problem = format!("`{}` failed: {}", words(), said.trim());
        return Err(refused(problem, "a container may need the capability CAP_NET_ADMIN"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(is_root: bool, there: &[&str]) -> String {
        let find = |name: &str| there.contains(&name).then(|| PathBuf::from(name));
        match Tools::found_by(is_root, &find) {
            Ok(_) => String::new(),
            Err(error) => format!("{error}; {}", error.help.as_deref().unwrap_or_default()),
        }
    }

    #[test]
    fn all_that_is_missing_is_in_one_error() {
        let text = message(false, &["ip", "tc"]);
        assert!(text.contains("need root, and there is no `nbd-server`"), "{text}");
        assert!(text.contains("sudo; `apt-get install nbd-server`"), "{text}");
        let text = message(true, &[]);
        assert!(text.contains("no `ip`, `tc`, `nbd-server`"), "{text}");
        assert!(text.contains("install iproute2 nbd-server`") && !text.contains("root"), "{text}");
        assert_eq!(message(true, &["ip", "tc", "nbd-server"]), "");
        assert!(!message(false, &["ip", "tc", "nbd-server"]).is_empty());
    }

    #[test]
    fn what_fails_says_so_itself() {
        let error = run(Path::new("/bin/sh"), &["-c", "echo no >&2; exit 3"]).unwrap_err();
        assert!(error.to_string().contains("failed: no"), "{error}");
        assert!(run(Path::new("/no/such/program"), &["x"]).is_err());
        assert_eq!(run(Path::new("/bin/sh"), &["-c", "echo yes"]).unwrap(), "yes\n");
    }
}
