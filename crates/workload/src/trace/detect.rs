//! Which format a text is in.

use super::Format;
use super::detect_records::{are_accesses, detect_records};
use super::formats::{
    Header, OracleAccess, blkparse_input, blkparse_summary, csv_header, fio_version,
    libcachesim_comment, msr_header,
};

/// The form of the first lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Detected {
    pub(crate) format: Format,
    /// DiskSim or MQSim: the text does not distinguish them.
    pub(crate) doubtful: bool,
}

/// Tells the format from the beginning of a trace. Records by what many of them have in common
/// ([`detect_records`]); fio and CSV by their first line, MSR by seven comma-separated fields,
/// Alibaba's and Tencent's by what their five hold, blkparse by `maj,min`, DiskSim and MQSim by five
/// columns. These two differ in the time (DiskSim writes fractions of ms) and in the last column
/// (MQSim knows 0 and 1).
pub(crate) fn detect(head: &[u8], whole: bool) -> Option<Detected> {
    let sure = |format| Some(Detected { format, doubtful: false });
    // Records come first: a binary file can contain bytes that look like a line of text. The
    // converse is excluded, because text does not fulfil the conditions of many records at once.
    if let Some(format) = detect_records(head) {
        return sure(format);
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}');
    // A line that may continue beyond the head gives no information.
    let end = if whole { text.len() } else { text.rfind('\n').unwrap_or(text.len()) };
    let lines = text[..end].lines().map(str::trim);
    if lines.clone().find(|line| !line.is_empty()).is_some_and(libcachesim_comment) {
        return sure(Format::LibCacheSim);
    }
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let first = *lines.peek()?;
    if fio_version(first).is_some() {
        return sure(Format::Fio);
    }
    // Its operations are in a column `op`, too, but there are no offsets.
    if Header::libcachesim(first).is_some() && Header::parse(first).is_err() {
        return sure(Format::LibCacheSim);
    }
    if csv_header(first) {
        return sure(Format::Csv);
    }
    // Seven fields alone would also fit other tables. The time, the offset and the size must be
    // numbers, and these are exactly the fields that the reader needs.
    if msr_header(first) || is_msr(first) {
        return sure(Format::Msr);
    }
    if blkparse_input(first) || blkparse_summary(first) || is_blkparse(first) {
        return sure(Format::Blkparse);
    }
    let lines: Vec<&str> = lines.take(1000).collect();
    cloud(&lines).and_then(sure).or_else(|| columns(lines.into_iter()))
}

/// The first seconds of 2001 and of 2107, since 1970: so far dates in seconds go.
const DATES_S: std::ops::Range<u64> = 978_307_200..4_323_369_600;

/// Alibaba's, Tencent's, libCacheSim's text with the next use in its last column, or none, by the
/// majority of the lines: a bad line is for the reader to report, with its number.
fn cloud(lines: &[&str]) -> Option<Format> {
    let (mut alibaba, mut tencent) = (0, 0);
    let mut accesses = Vec::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let numbers = |at: &[usize]| at.iter().all(|&at| is_number(fields[at]));
        match fields.len() {
            5 if matches!(fields[1], "R" | "W") && numbers(&[0, 2, 3, 4]) => alibaba += 1,
            5 if numbers(&[0, 1, 2, 4]) && matches!(fields[3], "0" | "1") => {
                let date = fields[0].parse().is_ok_and(|seconds| DATES_S.contains(&seconds));
                tencent += usize::from(date);
            }
            4 => accesses.extend(access(&fields)),
            _ => {}
        }
    }
    let most = |count: usize| 2 * count > lines.len();
    if most(alibaba) {
        Some(Format::Alibaba)
    } else if most(tencent) {
        Some(Format::Tencent)
    } else if accesses.len() == lines.len() && are_accesses(&accesses) {
        Some(Format::LibCacheSim)
    } else {
        None
    }
}

/// A line of `traceConv --output-txt`: time, object, size, next use.
fn access(fields: &[&str]) -> Option<OracleAccess> {
    let next = fields[3].parse().ok()?;
    Some(OracleAccess {
        seconds: fields[0].parse().ok()?,
        object: fields[1].parse().ok()?,
        length_bytes: fields[2].parse().ok()?,
        next: (next != -1 && next != i64::MAX).then_some(next),
    })
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
