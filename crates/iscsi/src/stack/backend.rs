//! The executors of the commands of logical units.

use std::fmt::Debug;

use ssdyno_block::Time;
use ssdyno_scsi::{JobProgress, ScsiData, ScsiJob, ScsiTarget};

use super::Units;

/// The executor of the commands that SCSI commands become, and the kind of these commands. It is passive: time goes on
/// for it in [`go_to`](Backend::go_to).
pub trait Backend: Sized {
    /// A command.
    type Command: Copy + Debug + Send;
    /// How it ends.
    type End: Copy + Debug;
    /// The end of a command whose data are not there.
    const NO_DATA: Self::End;
    /// The end of a command that is not carried out, because its task is aborted.
    const ABORTED: Self::End;

    /// The SCSI side.
    fn target(&self) -> &ScsiTarget;
    /// The same, to go on with.
    fn target_mut(&mut self) -> &mut ScsiTarget;
    /// The next command of `job`.
    fn next_command(&self, job: &mut ScsiJob) -> Option<Self::Command>;
    /// A command of `job` has ended.
    fn complete(
        &mut self,
        job: &mut ScsiJob,
        command: &Self::Command,
        end: Self::End,
    ) -> JobProgress;
    /// Where the data of a command are.
    fn data(command: &Self::Command) -> ScsiData;
    /// They come from the device.
    fn is_to_host(command: &Self::Command) -> bool;
    /// After how many milliseconds a command is to be sent; then at once.
    fn take_wait_ms(command: &mut Self::Command) -> u32 {
        let _ = command;
        0
    }
    /// The namespace that this command has formatted.
    fn formatted(command: &Self::Command, end: Self::End) -> Option<u32> {
        let _ = (command, end);
        None
    }
    /// Hands over a command of the task in `place`, with what it sends.
    ///
    /// # Errors
    /// [`Refused`]: it was not taken.
    fn send(
        &mut self,
        place: usize,
        command: Self::Command,
        outgoing: &[u8],
    ) -> Result<(), Refused<Self::End>>;
    /// A command that has ended.
    fn ended(&mut self) -> Option<Ended<Self>>;
    /// Looks at units again that may have other blocks now.
    fn look_again(units: &mut Units<Self>) {
        let _ = units;
    }
    /// How far its time has gone.
    fn now(&self) -> Time;
    /// When something happens next.
    fn next_event(&self) -> Option<Time>;
    /// Brings everything to `now`, before which nothing else happens.
    fn go_to(&mut self, now: Time);
}

/// A command that has ended.
pub struct Ended<B: Backend> {
    /// The task that it belongs to.
    pub place: usize,
    /// What was sent.
    pub command: B::Command,
    /// How it ended.
    pub end: B::End,
    /// What it brought.
    pub data: Vec<u8>,
}

/// Why a command was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused<E> {
    /// There is no room now: again after the next step.
    Later,
    /// It ends so.
    Ended(E),
}
