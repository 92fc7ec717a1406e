//! Says of which commit the program is, where it is built in the project's own repository.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Some(commit) = commit() {
        println!("cargo:rustc-env=SSDYNO_COMMIT={commit}");
    }
}

/// `None` without git, outside of a repository, and where a packaged source is inside somebody else's.
fn commit() -> Option<String> {
    let here = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&here).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let root = Path::new(&here).parent()?.parent()?.canonicalize().ok()?;
    let top = Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if top != root {
        return None;
    }
    let commit = git(&["rev-parse", "--verify", "HEAD"])?;
    // The reflog grows with each commit, checkout and rebase; HEAD itself stays as it is while its branch moves.
    for name in ["HEAD", "logs/HEAD"] {
        let path = Path::new(&here).join(git(&["rev-parse", "--git-path", name])?);
        // A file that is missing would have this run at each build.
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    commit.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(commit)
}
