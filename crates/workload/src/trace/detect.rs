//! Which format a text is in.

use super::Format;
use super::formats::{blkparse_input, blkparse_summary, csv_header, fio_version, msr_header};

/// What the first lines look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Detected {
    pub(crate) format: Format,
    /// DiskSim or MQSim, and nothing in the text tells which.
    pub(crate) doubtful: bool,
}

/// Tells the format from the beginning of a text: fio and CSV by their first line, MSR by seven
/// comma-separated fields, blkparse by `maj,min`, DiskSim and MQSim by five columns. These two
/// differ in the time (DiskSim writes fractions of ms) and in the last column (MQSim knows 0 and
/// 1).
pub(crate) fn detect(head: &[u8], whole: bool) -> Option<Detected> {
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}');
    // A line that may go on behind the head tells nothing.
    let end = if whole { text.len() } else { text.rfind('\n').unwrap_or(text.len()) };
    let lines = text[..end].lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let first = *lines.peek()?;
    let sure = |format| Some(Detected { format, doubtful: false });
    if fio_version(first).is_some() {
        return sure(Format::Fio);
    }
    if csv_header(first) {
        return sure(Format::Csv);
    }
    if msr_header(first) || is_msr(first) {
        return sure(Format::Msr);
    }
    if blkparse_input(first) || blkparse_summary(first) || is_blkparse(first) {
        return sure(Format::Blkparse);
    }
    columns(lines.take(1000))
}

/// Whether a beginning of `blkparse`'s text has requests that were dispatched (D), but none that
/// was queued (Q).
pub(crate) fn only_dispatched(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let actions = || text.lines().filter_map(|line| line.split_whitespace().nth(5));
    actions().any(|action| action == "D") && actions().all(|action| action != "Q")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_msr(line: &str) -> bool {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    fields.len() == 7 && is_number(fields[0]) && is_number(fields[4]) && is_number(fields[5])
}

fn is_blkparse(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    let device = fields.next().and_then(|device| device.split_once(','));
    device.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
        && fields.take(2).filter(|field| is_number(field)).count() == 2
}

/// DiskSim, MQSim or neither, by the majority of the lines that have five columns: a bad line is
/// for the reader to report, with its number.
fn columns<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Detected> {
    let (mut all, mut fractions, mut types) = (0, 0, 0);
    for line in lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [time, device, block, size, last] = fields[..] else { continue };
        if ![device, block, size].into_iter().all(is_number) {
            continue;
        }
        all += 1;
        fractions += u32::from(!is_number(time));
        types += u32::from(matches!(last, "0" | "1"));
    }
    match all {
        0 => None,
        _ if 2 * fractions >= all || 2 * types < all => {
            Some(Detected { format: Format::DiskSim, doubtful: false })
        }
        _ => Some(Detected { format: Format::MqSim, doubtful: true }),
    }
}
