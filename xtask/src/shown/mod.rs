//! What the documents tell a reader to type: each verb, flag and key must exist ([`exist`]), and what needs
//! nothing but the program must work ([`trial`]).
//!
//! Documents are `README.md`, `ARCHITECTURE.md`, `CONTRIBUTING.md` and `docs/*.md`. Commands stand in code blocks
//! and in spans of a line ([`read`]).

pub(crate) mod exist;
mod read;
pub(crate) mod trial;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use read::Shown;

/// Documents beside those in `docs/`.
const AT_THE_TOP: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// A document and the commands that it shows.
struct Document {
    /// Its path from the root of the checkout.
    name: String,
    text: String,
    /// In the order of the text.
    shown: Vec<Shown>,
}

/// Reads all documents.
///
/// # Errors
/// When one cannot be read.
fn documents(workspace: &Workspace) -> Result<Vec<Document>> {
    let mut names: Vec<String> = AT_THE_TOP.iter().map(|&name| name.to_owned()).collect();
    let mut guides = Vec::new();
    for entry in std::fs::read_dir(workspace.root.join("docs")).context("cannot read docs")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        guides.extend(name.ends_with(".md").then(|| format!("docs/{name}")));
    }
    guides.sort_unstable();
    names.extend(guides);
    names
        .into_iter()
        .map(|name| {
            let path = workspace.root.join(&name);
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
            Ok(Document { shown: read::commands(&text), name, text })
        })
        .collect()
}
