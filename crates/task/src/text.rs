//! Tasks as texts of TOML.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use ssdyno_cluster::PlanFile;
use ssdyno_session::{Document, Failure, RunSpec, nearest};
use toml::Spanned;

use crate::task::Task;

/// Values of the key `task`.
#[cfg(target_os = "linux")]
const NAMES: [&str; 8] = ["run", "pts", "profile", "compare", "sweep", "plan", "verify", "probe"];
#[cfg(not(target_os = "linux"))]
const NAMES: [&str; 6] = ["run", "pts", "profile", "compare", "sweep", "plan"];

/// The key that says which task it is; other keys are skipped.
#[derive(Deserialize)]
struct Head {
    task: Option<Spanned<toml::Value>>,
    /// Only a plan has them: a file of `ssdyno controller run` is a task as it is.
    clients: Option<IgnoredAny>,
}

impl Task {
    /// The task in a text of TOML, which messages call `name`. Without the key `task` it is a plan if it has `clients`, and
    /// the spec of a run otherwise.
    ///
    /// # Errors
    /// It is not TOML, or a key is wrong; the failure has its line.
    pub fn from_toml(name: &str, text: &str) -> Result<Task, Failure> {
        // Errors are ignored here, because the text is parsed again below. That
        // pass knows all keys and can name the line.
        let head: Option<Head> = toml::from_str(text).ok();
        let is_plan = head.as_ref().is_some_and(|head| head.clients.is_some());
        let Some(task) = head.and_then(|head| head.task) else {
            if is_plan {
                return plan(name, text);
            }
            // A text that is not TOML is refused by this call, with the
            // line and the column of the mistake.
            return RunSpec::from_toml(name, text).map(|spec| Task::Run(Box::new(spec)));
        };
        // The structures of tasks refuse unknown keys, and `task` is none of theirs. It is blanked out
        // instead of cut out, so that lines and columns stay right.
        let rest = without(text, task.span());
        let kind = task.get_ref().as_str().unwrap_or_default();
        match kind {
            "run" => read(name, text, &rest).map(Task::Run),
            "pts" => read(name, text, &rest).map(Task::Pts),
            "profile" => read(name, text, &rest).map(Task::Profile),
            "compare" => read(name, text, &rest).map(Task::Compare),
            "sweep" => read(name, text, &rest).map(Task::Sweep),
            "plan" => plan(name, &rest),
            #[cfg(target_os = "linux")]
            "verify" => read(name, text, &rest).map(Task::Verify),
            #[cfg(target_os = "linux")]
            "probe" => read(name, text, &rest).map(Task::Probe),
            other => Err(refuse(format!("there is no task `{other}`"), nearest(other, NAMES))),
        }
    }
}

fn refuse(message: String, nearest: Option<&str>) -> Failure {
    let help = match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("use one of {}", NAMES.join(", ")),
    };
    Failure::usage(message).with_help(help).with_key("task")
}

/// A plan, looked at as a whole: messages about its clients and steps have their lines only here.
fn plan(name: &str, text: &str) -> Result<Task, Failure> {
    PlanFile::parse(name, text).map(|file| Task::Plan(Box::new(file.plan)))
}

fn read<T: DeserializeOwned + JsonSchema>(
    name: &str,
    text: &str,
    rest: &str,
) -> Result<T, Failure> {
    Document::parse_edited(name, text, |_| toml::from_str(rest))
}

/// `text` with blanks instead of the line of `value`: all else keeps its place for messages.
fn without(text: &str, value: Range<usize>) -> String {
    let start = text[..value.start].rfind('\n').map_or(0, |newline| newline + 1);
    let blank = |(at, c): (usize, char)| match c {
        _ if !(start..value.end).contains(&at) => c.to_string(),
        // A blank takes one byte. A character of several bytes is replaced by as many blanks, so
        // that byte positions in messages stay the same.
        '\n' => "\n".to_owned(),
        c => " ".repeat(c.len_utf8()),
    };
    text.char_indices().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_task_that_it_names() {
        let text = "task = \"pts\" # which\ntarget = \"sim:config-a\"\nquick = true\n";
        let Task::Pts(pts) = Task::from_toml("the task", text).unwrap() else { panic!("{text}") };
        assert_eq!((pts.target.as_str(), pts.quick, pts.depth), ("sim:config-a", true, 32));
        // The key may come after others; tables have keys of the same name.
        let text = "target = \"x\"\n\"task\" = 'verify'\n[write]\nallowed = true\n";
        #[cfg(target_os = "linux")]
        assert!(
            matches!(Task::from_toml("the task", text), Ok(Task::Verify(v)) if v.write.allowed)
        );
        // A spec is a run, whether it says so or not.
        for text in ["target = \"null:\"\nseed = 7", "target = \"null:\"\ntask = \"run\"\nseed = 7"]
        {
            let task = Task::from_toml("the task", text).unwrap();
            assert_eq!((task.kind(), task.target(), task.seed()), ("run", Some("null:"), Some(7)));
        }
    }

    #[test]
    fn what_is_wrong_has_key_and_line() {
        for (text, key, line) in [
            ("task = \"pts\"\ntarget = \"x\"\nquikc = true", "quikc", Some(3)),
            ("task = \"\"\"pts\"\"\"\ndepth = \"many\"", "depth", Some(2)),
            ("# \u{b5}\ntask = \"profile\"\n[write]\nalowed = true", "write.alowed", Some(4)),
            ("task = \"ptss\"", "task", None),
            ("task = 7", "task", None),
            ("target = \"x\"\n[tsak]\ntask = \"pts\"", "tsak", Some(2)),
            ("task = \"run\"\nsede = 3", "sede", Some(2)),
            ("[[clients]]\nhost = \"a\"\nshare = 0", "clients[0].share", Some(3)),
            ("task = \"plan\"\n[[clients]]\nhots = \"a\"", "clients[0].hots", Some(3)),
            ("task = \"plan\"\nclients = []", "clients", Some(2)),
            ("task = \"pts\"\ntask = \"pts\"", "task", Some(2)),
        ] {
            let body = Task::from_toml("the task", text).unwrap_err().body();
            assert_eq!(
                (body.key.as_deref(), body.line),
                (Some(key), line),
                "{text}: {}",
                body.message
            );
            assert!(body.help.is_some(), "{text}");
        }
    }
}
