//! The help for a user who typed an option that does not exist.

use clap::error::{ContextKind, ContextValue};

use crate::help_texts::Help;

/// Options that create or destroy contents: the program must never suggest them.
pub(crate) const DESTROYING: [&str; 4] = ["--write", "--destroy", "--overwrite", "--size"];

/// Takes suggestions out of `error` that would destroy something.
pub(crate) fn harmless(mut error: clap::Error) -> clap::Error {
    let destroys = |option: &str| DESTROYING.contains(&option);
    let suggested = match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(option)) => destroys(option),
        Some(ContextValue::Strings(options)) => options.iter().any(|option| destroys(option)),
        _ => false,
    };
    if suggested {
        error.remove(ContextKind::SuggestedArg);
        // clap puts what it suggests into the usage, too.
        error.remove(ContextKind::Usage);
    }
    // Tips in words.
    let tips = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips.iter().any(|tip| offers(&tip.to_string())),
        _ => false,
    };
    if tips {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// Whether a tip names such an option.
fn offers(tip: &str) -> bool {
    DESTROYING.iter().any(|option| tip.contains(&format!("'{option}'")))
}

/// The name here of the option `wrong` of other tools.
pub(crate) fn called_here(wrong: &str) -> Option<String> {
    let name = wrong.split('=').next().unwrap_or(wrong);
    Help::load().other_tools.remove(name)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::verbs::Cli;

    /// Typing errors of `word`: a letter missing, added, replaced, two swapped, or the end cut off.
    fn near_misses(word: &str) -> Vec<String> {
        let letters: Vec<char> = word.chars().collect();
        let text = |letters: &[char]| letters.iter().collect::<String>();
        let mut all = Vec::new();
        for at in 0..letters.len() {
            let mut fewer = letters.clone();
            fewer.remove(at);
            all.push(text(&fewer));
            all.push(text(&letters[..at]));
            for letter in 'a'..='z' {
                let mut other = letters.clone();
                other[at] = letter;
                all.push(text(&other));
                other = letters.clone();
                other.insert(at, letter);
                all.push(text(&other));
            }
            if at + 1 < letters.len() {
                let mut swapped = letters.clone();
                swapped.swap(at, at + 1);
                all.push(text(&swapped));
            }
        }
        all.retain(|miss| !miss.is_empty());
        all
    }

    #[test]
    fn no_near_miss_of_a_destroying_option_offers_it() {
        let command = Cli::command();
        let mut tried = 0;
        for verb in command.get_subcommands() {
            let has = |name: &str| verb.get_arguments().any(|arg| arg.get_long() == Some(name));
            if !DESTROYING.iter().any(|option| has(&option[2..])) {
                continue;
            }
            let misses = DESTROYING.iter().flat_map(|option| near_misses(&option[2..]));
            let words = ["rw", "writes", "force", "wipe", "erase", "yes", "iosize"];
            for miss in misses.chain(words.map(str::to_owned)).filter(|miss| !has(miss)) {
                let line = ["ssdyno", verb.get_name(), "./x", "./y", &format!("--{miss}")];
                let Err(error) = Cli::try_parse_from(line) else { continue };
                let said = harmless(error).render().to_string();
                tried += 1;
                // What was typed is repeated.
                let typed = format!("'--{miss}'");
                assert!(!offers(&said.replace(&typed, "")), "{said}");
                let usage = said.lines().find(|line| line.contains("Usage:")).unwrap_or_default();
                let shown = usage.split_whitespace().any(|word| DESTROYING.contains(&word));
                assert!(!shown, "{said}");
            }
        }
        assert!(tried > 2000, "{tried}");
    }

    /// Without the mend clap offers them: the test above can fail.
    #[test]
    fn clap_alone_would_offer_them() {
        let error = Cli::try_parse_from(["ssdyno", "run", "./x", "--wirte"]).unwrap_err();
        assert!(error.render().to_string().contains("'--write'"), "{error}");
    }

    #[test]
    fn other_suggestions_stay() {
        let error = Cli::try_parse_from(["ssdyno", "run", "--workloda", "x"]).unwrap_err();
        assert!(harmless(error).render().to_string().contains("'--workload'"));
    }

    #[test]
    fn words_of_other_tools_are_explained() {
        assert!(called_here("--iops").is_some_and(|help| help.contains("--rate")));
        assert!(called_here("--duration=5").is_some_and(|help| help.contains("--for")));
        assert_eq!(called_here("--workload"), None);
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        for name in Help::load().other_tools.keys() {
            let exists = run.get_arguments().any(|arg| arg.get_long() == Some(&name[2..]));
            assert!(!exists, "{name} exists");
        }
    }
}
