//! Files of an identity. Nobody but their owner may read those that hold keys.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use ssdyno_session::{Failure, FailureKind};

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {error}", path.display());
    Failure::new(FailureKind::Unwritable, message)
        .with_help("keep the identity in a directory that you may write to")
        .with_key("identity")
}

/// Makes `directory` for its owner alone, if it is not there.
pub(super) fn make_directory(directory: &Path) -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| unwritable(directory, &error))
}

/// Writes `path` at once, for its owner alone. With `replace` it takes the place of one that is there; without, one that
/// is there is kept, and `false` is given.
pub(super) fn write(path: &Path, text: &str, replace: bool) -> Result<bool, Failure> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // The temporary file lies in the same directory, because `rename` and
    // `link` work only within one file system.
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let written = (|| {
        // A process with the same number may have been killed here. Its file could have other
        // permissions, so it is removed and not reused.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // `create_new` with mode 0600: the file is private from its first byte. A later `chmod`
        // would leave a moment in which others can open it.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        // The data must be on the disk before the name points to it. After a loss of power the new name could
        // otherwise hold an empty file, and the old key would be gone.
        file.sync_all()?;
        if replace {
            return std::fs::rename(&new, path).map(|()| true);
        }
        // `link` fails if the name exists, in one step. A test followed by a rename would let
        // two processes replace each other's authority.
        match std::fs::hard_link(&new, path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    })();
    // After a rename the temporary name is gone, and this removal finds nothing. After a
    // link or an error it removes the second name.
    let _ = std::fs::remove_file(&new);
    written.map_err(|error| unwritable(path, &error))
}

/// Removes `path`, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unwritable(path, &error)),
        _ => Ok(()),
    }
}

/// Adds `text` at the end of `path`, for its owner alone.
pub(super) fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let appended = (|| {
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        // One call for the whole line: with `O_APPEND` two
        // processes then cannot mix their lines.
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })();
    appended.map_err(|error| unwritable(path, &error))
}

/// Waits until no other process has `path` locked, and locks it until the file is dropped.
pub(super) fn lock(path: &Path) -> Result<File, Failure> {
    let locked = File::open(path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| unwritable(path, &error))
}

/// The text of `path`, which holds no key; `None` where there is no such file.
pub(super) fn read_list(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::usage(format!("cannot read {}: {error}", path.display()))
            .with_help("restore it, or let its owner alone use it")
            .with_key("identity")),
    }
}

/// The text of `path`, which holds a key; `None` where there is no such file.
///
/// # Errors
/// It cannot be read, or others can read it.
pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    let name = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::usage(format!("cannot read {name}: {error}"))
                .with_help("it holds a private key: its owner alone can use it")
                .with_key("identity"));
        }
    };
    // ssh refuses a key file that others can read, for the same reason: the key may
    // already be known, and going on would hide that.
    let mode = std::fs::metadata(path).map_or(0, |data| data.permissions().mode());
    if mode & 0o077 != 0 {
        let message = format!("others may read {name}, which holds a private key");
        return Err(Failure::usage(message)
            .with_help(format!("if nobody did, `chmod 600 {name}`; otherwise remove it"))
            .with_key("identity"));
    }
    Ok(Some(text))
}
