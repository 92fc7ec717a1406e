//! The files of a package beside the program, and how they are put into place.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Cmd;
use crate::workspace::Workspace;

/// Permissions of a program, and of everything else.
pub(super) const PROGRAM: u32 = 0o755;
pub(super) const TEXT: u32 = 0o644;

/// The files that are the same for each processor.
pub(super) struct Shared {
    /// README, changes, licenses.
    pub(super) documents: Vec<PathBuf>,
    /// `man/ssdyno.1` and those of the verbs.
    pub(super) pages: Vec<PathBuf>,
    /// `completion/ssdyno.bash`, `_ssdyno` and `ssdyno.fish`.
    pub(super) completions: Vec<PathBuf>,
}

/// Shells and the names that they look for.
const SHELLS: [(&str, &str); 3] =
    [("bash", "ssdyno.bash"), ("zsh", "_ssdyno"), ("fish", "ssdyno.fish")];

/// Makes manual pages and completion with `program` in `place`.
pub(super) fn shared(workspace: &Workspace, program: &Path, place: &Path) -> Result<Shared> {
    let program = program.display().to_string();
    let (man, completion) = (place.join("man"), place.join("completion"));
    fs::create_dir_all(&completion)?;
    let written = Cmd::new(&program).args(["man".to_owned(), man.display().to_string()]);
    if !written.capture()?.ok {
        bail!("`{written}` failed");
    }
    let mut completions = Vec::new();
    for (shell, name) in SHELLS {
        let script = Cmd::new(&program).args(["completion", shell]).capture()?;
        if !script.ok {
            bail!("`ssdyno completion {shell}` failed: {}", script.stderr.trim());
        }
        let file = completion.join(name);
        fs::write(&file, script.stdout)?;
        completions.push(file);
    }
    let documents = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];
    let documents = documents.map(|name| workspace.root.join(name)).to_vec();
    Ok(Shared { documents, pages: files(&man)?, completions })
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<_> = entries.collect::<Result<_>>()?;
    files.sort();
    Ok(files)
}

pub(super) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Copies `from`, with these permissions and not those of the checkout.
pub(super) fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let directory = to.parent().context("a file without a directory")?;
    let text = format!("cannot copy {} to {}", from.display(), to.display());
    fs::create_dir_all(directory).with_context(|| text.clone())?;
    fs::copy(from, to).with_context(|| text.clone())?;
    permit(to, mode)
}

/// Writes `text` for everybody to read.
pub(super) fn write(to: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file without a directory")?)?;
    fs::write(to, text)?;
    permit(to, TEXT)
}

#[cfg(unix)]
fn permit(file: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(mode))?)
}

#[cfg(not(unix))]
fn permit(_file: &Path, _mode: u32) -> Result<()> {
    bail!("packages are made on Linux")
}

/// Compresses `file` in place, to `file.gz`, without its time.
pub(super) fn compressed(file: &Path) -> Result<()> {
    let gzip = Cmd::new("gzip").args(["-9n".to_owned(), file.display().to_string()]);
    if gzip.stream()? { Ok(()) } else { bail!("`{gzip}` failed") }
}

/// An archive of `name` in `directory` that has the same bytes each time: sorted, of root, with one time.
pub(super) fn packed(directory: &Path, name: &str, archive: &Path, epoch: u64) -> Result<()> {
    let plain = archive.with_extension("");
    let order = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"];
    let tar = Cmd::new("tar")
        .args(order)
        .args([format!("--mtime=@{epoch}"), "-cf".to_owned(), plain.display().to_string()])
        .args([name])
        .dir(directory);
    if !tar.stream()? {
        bail!("`{tar}` failed");
    }
    compressed(&plain)
}
