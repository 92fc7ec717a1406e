//! iSCSI, the side of the initiator (RFC 7143): login without authentication and digests, error recovery level 0, one
//! connection a session, and the commands of a disk.

mod cdb;
mod conversation;
mod login;
mod pdu;
mod sense;
mod tasks;
mod unit;

use std::time::Instant;

use self::conversation::Conversation;
pub(crate) use self::login::UNKNOWN_TARGET;
use self::pdu::Numbers;
use self::tasks::Tasks;
use super::protocol::{Facts, Protocol, Talk, shown};
use super::stream::Stream;
use super::uri::UnitName;

/// Logs in on `stream`, which is blocking, and reads the description of the unit; `deadline` ends
/// it.
pub(crate) fn connect(
    stream: &mut Stream,
    name: &UnitName,
    deadline: Instant,
) -> Talk<(Box<dyn Protocol>, Facts)> {
    let mut conversation = conversation(stream, deadline);
    let parameters = login::log_in(&mut conversation, &name.initiator, Some(&name.target))?;
    let (unit, mut facts) = unit::look(&mut conversation, &name.target, name.lun)?;
    let numbers = conversation.numbers;
    let login::Parameters { segment_bytes, first_burst_bytes, initial_r2t, immediate, .. } =
        parameters;
    let unasked = match (immediate, initial_r2t) {
        (_, false) => first_burst_bytes,
        (true, true) => first_burst_bytes.min(segment_bytes),
        (false, true) => 0,
    };
    facts.notes.push(format!(
        "the target accepts {} outstanding commands and {unasked} B of unsolicited data per write; \
         further requests wait here, and their latencies include the wait",
        numbers.window()
    ));
    Ok((Box::new(Tasks::new(unit, parameters, numbers)), facts))
}

/// The targets of a server, as help for a user who named none of them; read on another connection.
pub(crate) fn targets(stream: &mut Stream, initiator: &str, deadline: Instant) -> Option<String> {
    let names = login::targets(&mut conversation(stream, deadline), initiator).ok()?;
    (!names.is_empty()).then(|| shown(&names))
}

fn conversation(stream: &mut Stream, deadline: Instant) -> Conversation<'_> {
    // CmdSN may begin anywhere.
    let numbers = Numbers { command: 1, command_most: 1, status: 0 };
    Conversation { stream, deadline, numbers }
}
