//! The next step of a controller, and the state it keeps until then.

/// An admin command of the driver's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Identify,
    Queues,
    /// The policy's weights, then the features of the configuration.
    Feature(usize),
    CompletionQueue(u16),
    SubmissionQueue(u16),
    /// Identifiers above this one.
    Namespaces(u32),
    Namespace(usize),
    DeleteSubmissionQueue(u16),
    DeleteCompletionQueue(u16),
    /// The power state that it is in.
    ReadPowerState,
    /// Goes to that of the suspend.
    Sleep,
    /// Goes back to that of before.
    Wake,
}

/// The task of a suspend, and its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Suspension {
    /// The power state that it goes to; `None`: it is shut down.
    pub(crate) target: Option<u8>,
    /// The power state that it was in.
    pub(crate) before: u8,
}
