//! The pages of `docs/reference/`: every key of a kind of file, from `ssdyno explain --json`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

/// Where the pages are.
pub(crate) const DIRECTORY: &str = "docs/reference";

/// File name to text of the pages of `explained`, what `ssdyno explain --json` printed.
///
/// # Errors
/// When that is not a list of keys.
pub(crate) fn pages(explained: &str) -> Result<BTreeMap<String, String>> {
    let explained: Value =
        serde_json::from_str(explained).context("`ssdyno explain` printed no JSON")?;
    let keys = explained["keys"].as_array().context("`ssdyno explain` printed no keys")?;
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    for key in keys {
        for file in key["files"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let page = pages.entry(format!("{file}.md")).or_insert_with(|| head(file));
            page.push_str(&row(key));
        }
    }
    Ok(pages)
}

fn head(file: &str) -> String {
    let (title, example) = match file {
        "spec" => ("Keys of a spec".to_owned(), "ssdyno explain queues"),
        "result" => ("Keys of the result of a run".to_owned(), "ssdyno explain latency_ns.p99"),
        "workload" => ("Keys of a workload file".to_owned(), "ssdyno explain workload.depth"),
        "host" => ("Keys of a host file".to_owned(), "ssdyno explain cpu.cores"),
        "network" => ("Keys of a network file".to_owned(), "ssdyno explain network.target"),
        kind => (format!("Keys of a device file: {kind}"), "ssdyno explain faults.error"),
    };
    format!(
        "# {title}\n\nMade by `cargo xtask schemas` from the schemas of the program. `{example}` prints the same for one key, with \
         the values\nof presets and their sources.\n\n| key | meaning | values | default |\n|---|---|---|---|\n"
    )
}

fn row(key: &Value) -> String {
    let text = |name: &str| key[name].as_str().unwrap_or_default().replace('|', "\\|");
    let words = key["words"].as_array().into_iter().flatten();
    let words: Vec<String> =
        words.filter_map(|word| Some(format!("`{}`", word["word"].as_str()?))).collect();
    let values = match words.len() {
        0 => text("form"),
        _ => text("form").replacen("a word", &words.join(", "), 1),
    };
    let default = match &key["default"] {
        Value::Object(_) | Value::Null if key["required"] == true => "required".to_owned(),
        Value::Object(_) | Value::Null => String::new(),
        value => format!("`{value}`"),
    };
    format!("| `{}` | {} | {values} | {default} |\n", text("key"), text("meaning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_on_the_page_of_each_of_its_files() {
        let explained = r#"{"keys": [{"key": "a.b", "files": ["ssd", "disk"], "meaning": "One | two.", "form": "a word, or a number",
            "words": [{"word": "x", "meaning": ""}, {"word": "y", "meaning": ""}], "default": "x", "required": false}]}"#;
        let pages = pages(explained).unwrap();
        assert_eq!(pages.keys().collect::<Vec<_>>(), ["disk.md", "ssd.md"]);
        let row = "| `a.b` | One \\| two. | `x`, `y`, or a number | `\"x\"` |\n";
        assert!(pages["ssd.md"].ends_with(row), "{}", pages["ssd.md"]);
        assert!(super::pages("{}").is_err());
    }
}
