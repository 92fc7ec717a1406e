//! Files of an identity. Only their owner may read files that contain keys.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

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
    // The temporary file lies in the same directory, because `rename` and `link` work only within one file system. Each
    // call has its own: with one for each process a thread could rename the unfinished file of another.
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}.{call}.new", std::process::id()));
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

/// Adds `line`, without its end, at the end of `path`, for its owner alone. After an error no part of it exists.
pub(super) fn append(path: &Path, line: &str) -> Result<(), Failure> {
    let appended = (|| {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        // The lock ends with `file`. Another process would otherwise lose its line to `set_len`.
        file.lock()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // A loss of power may have left half a line. The new one is not glued to it: only one line is damaged then, and its
        // certificate was never given away.
        let begin = if text.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
        let written =
            file.write_all(format!("{begin}{line}\n").as_bytes()).and_then(|()| file.sync_all());
        // On a full disk the first part of the line may have been written.
        written.inspect_err(|_| drop(file.set_len(text.len() as u64)))
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
            .with_help("restore it, or allow only its owner to use it")
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
                .with_help("it holds a private key, so only its owner can use it")
                .with_key("identity"));
        }
    };
    // ssh refuses a key file that others can read, for the same reason: the key may
    // already be known, and going on would hide that.
    let mode = std::fs::metadata(path).map_or(0, |data| data.permissions().mode());
    if mode & 0o077 != 0 {
        let message = format!("other users can read {name}, which holds a private key");
        return Err(Failure::usage(message)
            .with_help(format!("if nobody read it, run `chmod 600 {name}`; otherwise remove it"))
            .with_key("identity"));
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each thread writes its own temporary file: whole texts only, and no error.
    #[test]
    fn threads_do_not_share_a_temporary_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.pem");
        std::thread::scope(|scope| {
            for text in ["a".repeat(4096), "b".repeat(8192)] {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..40 {
                        write(path, &text, true).unwrap();
                        let found = std::fs::read_to_string(path).unwrap();
                        assert!(matches!(found.len(), 4096 | 8192), "{}", found.len());
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
