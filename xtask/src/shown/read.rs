//! Finds commands in Markdown: fenced and indented code blocks, and code spans.
//!
//! A fenced block is looked into where it says that it is for a shell, or shows a prompt; others are pictures,
//! programs and files. Not a Markdown parser: an indented block stands after an empty line, and spans end with
//! their paragraph.

/// A command as a document shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// Line of the document on which it begins, from 1.
    pub(super) line: usize,
    pub(super) tool: Tool,
    /// What follows the program (`ssdyno`, `cargo xtask`, `cargo`), as a shell would split it, up to the first
    /// operator or comment. Of options alone: all words.
    pub(super) words: Vec<String>,
    /// The file after `>`.
    pub(super) into: Option<String>,
    /// Whether it is a span in the text, which may only name a verb.
    pub(super) span: bool,
    /// The lines that are shown as its output, trimmed at the end; `…` stands for any.
    pub(super) prints: Vec<String>,
}

/// Whose command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// `ssdyno`, or `cargo run … --`.
    Product,
    /// `cargo xtask`.
    Xtask,
    /// Any other call of cargo.
    Cargo,
    /// None: a span that begins with a long option.
    Options,
}

impl Shown {
    /// The first word; `None` when there is none, or an option stands there.
    pub(super) fn verb(&self) -> Option<&str> {
        let verb = self.words.first().filter(|_| self.tool != Tool::Options)?;
        (!verb.starts_with(['-', '[', '<'])).then_some(verb)
    }

    /// The long options with their dashes, without values and the brackets of what may be left out.
    pub(super) fn flags(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|word| {
            let word = word.trim_start_matches('[').trim_end_matches([']', ',']);
            let name = word.split('=').next().unwrap_or(word);
            // A word with a space was quoted: it is a value, which may have options of its own in it.
            (name.len() > 2 && name.starts_with("--") && !name.contains(' ')).then_some(name)
        })
    }

    /// The values of an option, given as the next word or behind `=`.
    pub(super) fn values<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        self.words.iter().enumerate().filter_map(move |(at, word)| {
            if word == option {
                return self.words.get(at + 1).map(String::as_str);
            }
            word.strip_prefix(option)?.strip_prefix('=')
        })
    }
}

/// The info string of a fence whose block is for a shell.
const SHELLS: &[&str] = &["sh", "bash", "shell", "console"];

/// All commands of a Markdown text, in its order.
pub(super) fn commands(markdown: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut prose: Vec<(usize, &str)> = Vec::new();
    // Within a fence: whether it is one for a shell.
    let mut fence: Option<bool> = None;
    let (mut indented, mut after_empty) = (false, true);
    for (index, line) in markdown.lines().enumerate() {
        let mark = line.trim_start().strip_prefix("```");
        let empty = line.trim().is_empty();
        indented = fence.is_none()
            && mark.is_none()
            && line.starts_with("    ")
            && (indented || after_empty);
        after_empty = empty;
        if indented || fence.is_some() && mark.is_none() {
            spans(&std::mem::take(&mut prose), &mut found);
            block.push((index + 1, line.strip_prefix("    ").filter(|_| indented).unwrap_or(line)));
            continue;
        }
        lines(&std::mem::take(&mut block), fence.unwrap_or(true), &mut found);
        if let Some(language) = mark {
            fence = fence.is_none().then(|| SHELLS.contains(&language.trim()));
        }
        if empty || mark.is_some() {
            spans(&std::mem::take(&mut prose), &mut found);
        } else {
            prose.push((index + 1, line));
        }
    }
    lines(&block, fence.unwrap_or(true), &mut found);
    spans(&prose, &mut found);
    found
}

/// The commands of a code block. Where one line has a prompt, lines without are output.
fn lines(block: &[(usize, &str)], shell: bool, found: &mut Vec<Shown>) {
    let prompts = block.iter().any(|(_, line)| line.starts_with("$ "));
    if !prompts && !shell {
        return;
    }
    let mut rest = block.iter();
    let mut last = None;
    while let Some((number, line)) = rest.next() {
        let command = line.strip_prefix("$ ").or((!prompts).then_some(*line));
        let Some(command) = command else {
            if let Some(shown) = last.and_then(|at: usize| found.get_mut(at)) {
                shown.prints.push(line.trim_end().to_owned());
            }
            continue;
        };
        let mut command = command.trim().to_owned();
        while let Some(open) = command.strip_suffix('\\') {
            let next = rest.next().map_or("", |(_, line)| line.trim());
            command = format!("{open}{next}");
        }
        let shown = parse(&command, *number, false);
        last = shown.is_some().then_some(found.len());
        found.extend(shown);
    }
}

/// The commands in the code spans of a paragraph. A span may go over the end of a line.
fn spans(paragraph: &[(usize, &str)], found: &mut Vec<Shown>) {
    let Some((first, _)) = paragraph.first() else { return };
    let text = paragraph.iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    let mut rest = text.as_str();
    while let Some(open) = rest.find('`') {
        let ticks = rest[open..].chars().take_while(|&c| c == '`').count();
        let inside = &rest[open + ticks..];
        let line = first + text[..text.len() - inside.len()].matches('\n').count();
        let Some(end) = inside.find(&rest[open..open + ticks]) else { return };
        found.extend(parse(&inside[..end], line, true));
        rest = &inside[end + ticks..];
    }
}

fn parse(text: &str, line: usize, span: bool) -> Option<Shown> {
    let (words, into) = split(text);
    let called: Vec<&str> = words.iter().map(String::as_str).collect();
    let (tool, skipped) = match called.as_slice() {
        ["cargo", "xtask", ..] => (Tool::Xtask, 2),
        // Without a package it is the default member, which is the product.
        ["cargo", "run", rest @ ..]
            if !rest.iter().any(|word| matches!(*word, "-p" | "--example")) =>
        {
            let dashes = rest.iter().position(|word| *word == "--")?;
            (Tool::Product, dashes + 3)
        }
        ["cargo", ..] => (Tool::Cargo, 1),
        [program, ..] if program.rsplit('/').next() == Some("ssdyno") => (Tool::Product, 1),
        [option, ..] if span && option.len() > 2 && option.starts_with("--") => (Tool::Options, 0),
        _ => return None,
    };
    let words = words[skipped..].to_vec();
    Some(Shown { line, tool, words, into, span, prints: Vec::new() })
}

/// The words of the first command of a line, as a shell splits them, and the file after `>`.
fn split(text: &str) -> (Vec<String>, Option<String>) {
    let (mut words, mut into) = (Vec::new(), None);
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, plain, after) = word(rest);
        rest = after.trim_start();
        let operator = matches!(word.as_str(), "|" | "||" | "&&" | ";");
        if plain && (operator || word.starts_with('#')) {
            break;
        }
        if plain && word == ">" {
            let (name, _, after) = self::word(rest);
            into = Some(name);
            rest = after.trim_start();
            continue;
        }
        words.push(word);
    }
    (words, into)
}

/// The first word of a text without its quotes, whether it had none, and what follows it.
fn word(text: &str) -> (String, bool, &str) {
    let (mut word, mut quote, mut plain) = (String::new(), None, true);
    for (at, c) in text.char_indices() {
        match quote {
            None if c.is_whitespace() => return (word, plain, &text[at..]),
            None if c == '\'' || c == '"' => (quote, plain) = (Some(c), false),
            Some(open) if open == c => quote = None,
            _ => word.push(c),
        }
    }
    (word, plain, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(markdown: &str) -> Vec<(usize, Tool, String, bool)> {
        let all = commands(markdown);
        all.into_iter().map(|s| (s.line, s.tool, s.words.join(" "), s.span)).collect()
    }

    fn row(line: usize, tool: Tool, words: &str, span: bool) -> (usize, Tool, String, bool) {
        (line, tool, words.to_owned(), span)
    }

    #[test]
    fn commands_are_found_in_blocks_and_spans() {
        let text = "ssdyno prose\n```sh\n$ cargo run --release -- run --seed 3 [--keep=none] # --no\n\
                    $ ssdyno show sim:x | grep --color\n$ ./target/release/ssdyno list\n\
                    $ cargo xtask test\n$ cargo build --release\nssdyno is output\n```\n\
                    Then `ssdyno list ftls`, ``--set\nk=v`` and `ssdyno-ftl`; `cargo xtask check` too.\n\n\
                    \x20   ssdyno pts sim:x \\\n      --quick\n\n- a list\n    ssdyno never\n\n\
                    ```\n ssdyno in a picture\n```\n";
        assert_eq!(
            seen(text),
            [
                row(3, Tool::Product, "run --seed 3 [--keep=none]", false),
                row(4, Tool::Product, "show sim:x", false),
                row(5, Tool::Product, "list", false),
                row(6, Tool::Xtask, "test", false),
                row(7, Tool::Cargo, "build --release", false),
                row(10, Tool::Product, "list ftls", true),
                row(10, Tool::Options, "--set k=v", true),
                row(11, Tool::Xtask, "check", true),
                row(13, Tool::Product, "pts sim:x --quick", false),
            ]
        );
        let first = &commands(text)[0];
        assert_eq!(first.flags().collect::<Vec<_>>(), ["--seed", "--keep"]);
        assert_eq!(first.verb(), Some("run"));
        assert_eq!(commands(text)[6].verb(), None);
    }

    #[test]
    fn words_are_those_of_a_shell_and_output_belongs_to_its_command() {
        let text = "```\n$ ssdyno run \\\n    --set 'a=[{ b = \"1\" }]' --set=c=d > out.txt # why\nIOPS  1\n…\n```\n";
        let [shown] = &commands(text)[..] else { panic!("one command: {:?}", commands(text)) };
        assert_eq!(shown.words, ["run", "--set", "a=[{ b = \"1\" }]", "--set=c=d"]);
        assert_eq!(shown.values("--set").collect::<Vec<_>>(), ["a=[{ b = \"1\" }]", "c=d"]);
        assert_eq!(shown.into.as_deref(), Some("out.txt"));
        assert_eq!(shown.prints, ["IOPS  1", "…"]);
    }
}
