//! Which traces may be given: those that some run needs.

use std::path::PathBuf;

use ssdyno_session::Failure;

use crate::PapersOptions;

impl PapersOptions {
    /// Adds the trace `NAME=FILE`. Devices are added before: they have traces of their own.
    ///
    /// # Errors
    /// No `=`, or a name that no run needs.
    pub fn add_trace(&mut self, text: &str) -> Result<(), Failure> {
        let mut known = crate::s3::trace_names()?;
        known.extend(crate::disks::trace_names()?);
        // A device of the user has the trace of its own name. Its name is known only after
        // `--device`, which is why traces are added after devices.
        known.extend(
            self.devices.keys().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>(),
        );
        match text.split_once('=') {
            Some((name, file)) if known.iter().any(|known| known == name) && !file.is_empty() => {
                self.traces.insert(name.to_owned(), PathBuf::from(file));
                Ok(())
            }
            _ => Err(Failure::usage(format!("`{text}` is not a trace of a paper"))
                .with_help(format!("give NAME=FILE; NAME is one of: {}", known.join(", ")))),
        }
    }
}
