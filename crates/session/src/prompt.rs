//! The person or program that is asked before data is destroyed.

/// The person or program that is asked before data is destroyed.
pub trait Prompt {
    /// Whether somebody is there to answer.
    fn is_attended(&self) -> bool;

    /// Shows `text`.
    fn tell(&mut self, text: &str);

    /// The answer to `question`, without space around it; `None` where none comes.
    fn ask(&mut self, question: &str) -> Option<String>;

    /// Whether the user interrupted the program: long preparations then end early.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// No prompt: everything that a spec does not allow is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unattended;

impl Prompt for Unattended {
    fn is_attended(&self) -> bool {
        false
    }

    fn tell(&mut self, _: &str) {}

    fn ask(&mut self, _: &str) -> Option<String> {
        None
    }
}
