//! Help of two lengths: `-h` has what people type each day, `--help` everything, with examples at its end.

use std::collections::BTreeMap;

use clap::{Command, CommandFactory};

use crate::help_texts::{Help, VerbHelp};
use crate::verbs::Cli;

impl VerbHelp {
    /// `verb` with its help; `texts` are those of [`Help`].
    fn add_to(&self, mut verb: Command, texts: &BTreeMap<String, String>) -> Command {
        if !self.everyday.is_empty() {
            verb = verb.after_help("--help shows all options and examples.");
            verb = verb.mut_args(|arg| match self.everyday.iter().any(|id| arg.get_id() == id) {
                true => arg,
                false => arg.hide_short_help(true),
            });
        }
        let lines =
            self.examples.iter().map(|[what, args]| format!("  # {what}\n  ssdyno {args}\n"));
        let examples = format!("Examples:\n{}", lines.collect::<String>());
        let before = self.below.as_ref().and_then(|name| texts.get(name));
        let before = before.map(|text| format!("{text}\n\n")).unwrap_or_default();
        verb.after_long_help(before + examples.trim_end())
    }
}

/// The command line with both lengths of help.
pub(crate) fn command() -> Command {
    let Help { exit_codes, texts, verbs, .. } = Help::load();
    let mut command = Cli::command().after_help(exit_codes);
    for help in verbs {
        // A verb of another system only.
        if command.find_subcommand(&help.name).is_some() {
            command = command.mut_subcommand(&help.name, |verb| help.add_to(verb, &texts));
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_accepted_and_shown() {
        for VerbHelp { name, examples, .. } in Help::load().verbs {
            let mut command = command();
            let Some(found) = command.find_subcommand_mut(&name) else { continue };
            let help = found.render_long_help().to_string();
            for [what, args] in &examples {
                assert!(args.starts_with(&name) && help.contains(args), "{what}: {help}");
                let parsed = super::command()
                    .try_get_matches_from(std::iter::once("ssdyno").chain(args.split_whitespace()));
                assert!(parsed.is_ok(), "{args}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn short_help_fits_a_screen_and_names_options_that_exist() {
        let with_everyday = |help: &VerbHelp| !help.everyday.is_empty();
        for VerbHelp { name: verb, everyday, .. } in
            Help::load().verbs.into_iter().filter(with_everyday)
        {
            let mut command = command();
            let found = command.find_subcommand_mut(&verb).unwrap();
            let ids: Vec<String> =
                found.get_arguments().map(|arg| arg.get_id().to_string()).collect();
            for id in &everyday {
                assert!(
                    ids.iter().any(|known| known == id) || id == "json",
                    "{verb}: {id} of {ids:?}"
                );
            }
            let lines = found.render_help().to_string().lines().count();
            assert!(
                lines <= 60 && lines < found.render_long_help().to_string().lines().count(),
                "{lines}"
            );
        }
    }

    #[test]
    fn every_verb_that_does_something_has_an_example() {
        let none = ["completion", "man", "prober", "controller", "help"];
        let help = Help::load();
        let texts = help.verbs.iter().filter_map(|verb| verb.below.as_ref());
        assert!(texts.into_iter().all(|name| help.texts.contains_key(name)));
        for verb in Cli::command().get_subcommands() {
            let has = help.verbs.iter().any(|known| known.name == verb.get_name());
            assert!(has || none.contains(&verb.get_name()), "{}", verb.get_name());
        }
    }
}
