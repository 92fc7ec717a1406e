//! Saved output of `lspci -xxxx` (or `-xxx`, `-x`), with or without `-D`, `-nn`, `-v`.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use ssdyno_spec::pci::EXTENDED_CONFIG_BYTES;

use crate::PciAddress;
use crate::config::Snapshot;

/// What was saved.
#[derive(Clone, Default, Debug)]
pub struct Dump {
    /// The configuration spaces.
    pub snapshot: Snapshot,
    /// What follows the class in the line of a function: its maker and name.
    pub names: BTreeMap<PciAddress, String>,
    /// The interrupt that `-v` prints: what the operating system of the machine said. For a
    /// function that uses MSI, this is the interrupt of a message, not of its pin.
    pub interrupts: BTreeMap<PciAddress, u32>,
    /// The driver that `-v` or `-k` prints.
    pub drivers: BTreeMap<PciAddress, String>,
    /// The required size of a base address register in bytes, by its number, if `-vv` prints it.
    pub bar_bytes: BTreeMap<(PciAddress, u8), u64>,
    /// Lines that were left out, in order: messages and prompts of a terminal, and functions without bytes.
    pub skipped: Vec<DumpError>,
}

/// A line that does not belong into a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct DumpError {
    /// Number of the line, from 1.
    pub line: usize,
    /// Its error.
    pub what: Garbled,
}

/// The error of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Garbled {
    /// Nothing that lspci prints.
    #[error("not a line of `lspci -xxxx` output")]
    Unknown,
    /// Bytes before the first function.
    #[error("bytes without a function: the line with its address is missing above")]
    NoFunction,
    /// A byte is not two hexadecimal digits, or there are more than 16.
    #[error("not up to 16 bytes of two hexadecimal digits each")]
    Bytes,
    /// Lines are missing, double or out of order.
    #[error("bytes for offset {found:#x}, but offset {expected:#x} must come next")]
    Offset {
        /// What the line says.
        found: usize,
        /// What it should say.
        expected: usize,
    },
    /// More than a function can have.
    #[error("more than 4096 bytes for one function")]
    TooMany,
    /// The function was there before.
    #[error("function {0} is in the file twice")]
    Twice(PciAddress),
    /// The header is not complete.
    #[error("function {address} has {bytes} of the 64 bytes of its header; save with lspci -xxxx")]
    NoHeader {
        /// The function.
        address: PciAddress,
        /// How many there are.
        bytes: usize,
    },
    /// There is no function in the file.
    #[error("no function in the file; save one with lspci -xxxx, as root")]
    Empty,
}

/// A function whose bytes are being read.
struct Open {
    address: PciAddress,
    line: usize,
    image: Vec<u8>,
}

impl Open {
    /// Whether `line` can be the second half of one: text where bytes have not begun.
    fn wraps(&self, line: &str) -> bool {
        self.image.is_empty() && line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '(')
    }
}

/// A line without its end, a byte order mark, and the marks of a mail that quotes it.
fn bare(raw: &str) -> &str {
    let line = raw.trim_end().trim_start_matches('\u{feff}');
    let rest = line.trim_start_matches('>');
    if rest.len() == line.len() { line } else { rest.strip_prefix(' ').unwrap_or(rest) }
}

/// The blanks before the line of a function.
fn blanks_before_function(line: &str) -> Option<&str> {
    let bare = line.trim_start();
    function_line(bare).map(|_| &line[..line.len() - bare.len()])
}

/// Reads a dump, alone, quoted in a mail or indented as a whole. What a terminal had besides, and functions
/// without bytes, are [left out](Dump::skipped).
///
/// # Errors
/// The first invalid line of bytes, a function that appears twice, or the absence of functions.
pub fn parse(text: &str) -> Result<Dump, DumpError> {
    let mut dump = Dump::default();
    let mut open: Option<Open> = None;
    let mut lines = 0;
    // Some ends of lines are a carriage return alone; those before a line feed are trimmed.
    let end = if text.contains('\n') { '\n' } else { '\r' };
    // What was pasted as a block is indented as a whole, and `-v` indents more.
    let indent = text.split_terminator(end).find_map(|raw| blanks_before_function(bare(raw)));
    let indent = indent.unwrap_or_default();
    for (index, raw) in text.split_terminator(end).enumerate() {
        lines = index + 1;
        let error = |what| DumpError { line: index + 1, what };
        let line = bare(raw);
        let line = line.strip_prefix(indent).unwrap_or(line);
        if let Some((offset, bytes)) = hex_line(line.trim_start()) {
            let open = open.as_mut().ok_or(error(Garbled::NoFunction))?;
            add_bytes(&mut open.image, offset, bytes).map_err(error)?;
        } else if let Some((address, rest)) = function_line(line) {
            dump.close(open.take());
            if dump.names.contains_key(&address) {
                return Err(error(Garbled::Twice(address)));
            }
            dump.names.insert(address, name(rest).to_owned());
            open = Some(Open { address, line: index + 1, image: Vec::new() });
        } else if let Some(open) = open.as_ref().filter(|open| open.wraps(line)) {
            // A long line that a mail program broke in two; of the function's own line, its name.
            if is_message(line) || is_prompt(line) {
                dump.skipped.push(error(Garbled::Unknown));
            } else if index == open.line {
                let rest = dump.names.entry(open.address).or_default();
                rest.push(' ');
                rest.push_str(name(line));
            }
        } else if is_message(line) || !is_text(line) {
            dump.skipped.push(error(Garbled::Unknown));
        } else if let Some(open) = &open {
            dump.interrupts.extend(interrupt(line).map(|irq| (open.address, irq)));
            dump.drivers.extend(driver(line).map(|name| (open.address, name.to_owned())));
            dump.bar_bytes.extend(region(line).map(|(bar, bytes)| ((open.address, bar), bytes)));
        }
    }
    dump.close(open);
    if dump.snapshot.is_empty() {
        let without = |error: &&DumpError| matches!(error.what, Garbled::NoHeader { .. });
        let empty = DumpError { line: lines.max(1), what: Garbled::Empty };
        return Err(dump.skipped.iter().find(without).copied().unwrap_or(empty));
    }
    dump.skipped.sort_by_key(|error| error.line);
    Ok(dump)
}

impl Dump {
    fn close(&mut self, open: Option<Open>) {
        let Some(Open { address, line, image }) = open else { return };
        let bytes = image.len();
        if bytes < 64 {
            // Perhaps the list of another call, and its bytes follow.
            self.names.remove(&address);
            self.skipped.push(DumpError { line, what: Garbled::NoHeader { address, bytes } });
        } else {
            self.snapshot.add(address, image);
        }
    }
}

/// Offset and bytes of a line such as `10: 04 00 f0 fe`. Looks no further than at the offset: an
/// address has no blank behind its colon.
fn hex_line(line: &str) -> Option<(usize, &str)> {
    let (offset, bytes) = line.split_once(": ")?;
    let sound = matches!(offset.len(), 2..=4) && offset.bytes().all(|b| b.is_ascii_hexdigit());
    let offset = usize::from_str_radix(offset, 16).ok().filter(|_| sound)?;
    Some((offset, bytes))
}

fn add_bytes(image: &mut Vec<u8>, offset: usize, bytes: &str) -> Result<(), Garbled> {
    // A gap in the offsets means that a line is lost. Filling it with zeroes would produce a
    // plausible but wrong configuration space.
    if offset != image.len() {
        return Err(Garbled::Offset { found: offset, expected: image.len() });
    }
    let before = image.len();
    for byte in bytes.split_ascii_whitespace() {
        let sound = byte.len() == 2 && byte.bytes().all(|b| b.is_ascii_hexdigit());
        let byte = u8::from_str_radix(byte, 16).ok().filter(|_| sound).ok_or(Garbled::Bytes)?;
        image.push(byte);
    }
    if !(1..=16).contains(&(image.len() - before)) {
        return Err(Garbled::Bytes);
    }
    if image.len() > usize::from(EXTENDED_CONFIG_BYTES) {
        return Err(Garbled::TooMany);
    }
    Ok(())
}

/// The address that a line starts with, and the text behind it.
fn function_line(line: &str) -> Option<(PciAddress, &str)> {
    let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some((address.parse().ok()?, rest))
}

/// `Intel Corporation Device 0d57` of `Host bridge: Intel Corporation Device 0d57 (rev 01)`.
fn name(rest: &str) -> &str {
    let name = rest.split_once(": ").map_or(rest, |(_, name)| name);
    name.split(" (rev ").next().unwrap_or(name).split(" (prog-if ").next().unwrap_or(name).trim()
}

/// The number in `Interrupt: pin A routed to IRQ 16` of `-vv` and `Flags: bus master, IRQ 16` of
/// `-v`; 0 and 255 stand for none (PCI clause 6.2.4).
fn interrupt(line: &str) -> Option<u32> {
    let line = line.trim_start();
    let number = match line.strip_prefix("Interrupt: ") {
        Some(rest) => rest.split_once(" routed to IRQ ")?.1,
        None => line.strip_prefix("Flags: ")?.split(", ").find_map(|f| f.strip_prefix("IRQ "))?,
    };
    // 0 and 255 mean that no interrupt is connected (PCI 6.2.4). lspci prints them like any other
    // number, so they are filtered here.
    number.trim_end().parse().ok().filter(|irq| !matches!(irq, 0 | 255))
}

/// The name in `Kernel driver in use: nvme`.
fn driver(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix("Kernel driver in use: ")?.trim_end();
    (!name.is_empty()).then_some(name)
}

/// Number and size in `Region 0: Memory at fe800000 (64-bit, non-prefetchable) [size=16K]`.
fn region(line: &str) -> Option<(u8, u64)> {
    let (bar, rest) = line.trim_start().strip_prefix("Region ")?.split_once(": ")?;
    let (_, size) = rest.split_once("[size=")?;
    let size = size.split_once(']')?.0;
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &size[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    Some((bar.parse().ok().filter(|bar| *bar < 6)?, bytes))
}

/// What `-v` prints is indented; old versions print comments.
fn is_text(line: &str) -> bool {
    line.is_empty() || line.starts_with([' ', '\t', '#'])
}

/// A message of lspci itself begins with its name.
fn is_message(line: &str) -> bool {
    line.starts_with("lspci:") || line.starts_with("pcilib:")
}

/// `user@host:~$ lspci -xxxx`, as a terminal shows it: no name of a function has both signs.
fn is_prompt(line: &str) -> bool {
    let sign = |sign: char| {
        line.ends_with(sign) || line.split(sign).skip(1).any(|rest| rest.starts_with(' '))
    };
    line.split_once('@').is_some_and(|(user, _)| !user.contains(' ')) && (sign('$') || sign('#'))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec;

    use proptest::prelude::*;

    use crate::config::ConfigAccess;

    use super::*;

    /// A function's line and 64 bytes, all `fill`.
    fn function(address: &str, fill: &str) -> String {
        let lines = (0..4).map(|line| format!("{line:x}0:{}\n", format!(" {fill}").repeat(16)));
        format!("{address} Host bridge: Some Maker A thing (rev 02)\n{}", lines.collect::<String>())
    }

    fn error(text: &str) -> (usize, Garbled) {
        let error = parse(text).expect_err("a garbled line");
        (error.line, error.what)
    }

    fn skipped(text: &str) -> Vec<(usize, Garbled)> {
        let dump = parse(text).expect("the rest is a dump");
        dump.skipped.iter().map(|error| (error.line, error.what)).collect()
    }

    /// A terminal's prompts and messages, and functions without bytes, are left out and told by line; what is
    /// around them is read whole.
    #[test]
    fn what_is_no_function_is_left_out() {
        let (first, second) = (function("00:00.0", "5a"), function("00:1f.3", "01"));
        let alone = |address: &str| format!("{address} SMBus: Some Maker Another thing\n");
        let no_header = |device, function, bytes| Garbled::NoHeader {
            address: PciAddress::new(0, 0, device, function),
            bytes,
        };
        let unknown = Garbled::Unknown;
        for (text, left_out) in [
            (format!("root@box:~# lspci -xxxx\n{first}{second}"), vec![(1, unknown)]),
            (format!("{first}{second}root@box:~#\n"), vec![(11, unknown)]),
            (format!("[me@box ~]$ sudo lspci -xxxx\n{first}{second}"), vec![(1, unknown)]),
            (format!("{first}sudo: a password is required\n{second}"), vec![(6, unknown)]),
            (format!("{first}pcilib: sysfs_read_vpd: failed\n{second}"), vec![(6, unknown)]),
            (format!("{first}{}{second}", alone("00:01.0")), vec![(6, no_header(1, 0, 0))]),
            (format!("{first}{second}{}", alone("00:01.2")), vec![(11, no_header(1, 2, 0))]),
            (
                format!("{first}{}me@box:~$ exit\n{second}", alone("00:01.0")),
                vec![(6, no_header(1, 0, 0)), (7, unknown)],
            ),
            (
                format!("{}lspci: Cannot read\n{first}{second}", alone("00:01.0")),
                vec![(1, no_header(1, 0, 0)), (2, unknown)],
            ),
            (
                format!("{first}00:02.0 X: y\n00:{}\n{second}", " 00".repeat(16)),
                vec![(6, no_header(2, 0, 16))],
            ),
        ] {
            assert_eq!(skipped(&text), left_out, "{text}");
            let mut dump = parse(&text).unwrap();
            assert_eq!(dump.snapshot.known().unwrap().len(), 2, "{text}");
            let at = PciAddress::new(0, 0, 0x1f, 3);
            assert_eq!(dump.snapshot.read(at, 60), 0x0101_0101);
            assert_eq!(dump.names[&at], "Some Maker A thing");
        }
    }

    /// `lspci`, then `lspci -xxxx`, in one file.
    #[test]
    fn a_list_before_the_bytes() {
        let both =
            format!("00:00.0 Host bridge: Some Maker A thing\n{}", function("00:00.0", "5a"));
        assert_eq!(skipped(&both).len(), 1);
        assert_eq!(parse(&both).unwrap().names.len(), 1);
    }

    #[test]
    fn functions_with_text_between() {
        let text = format!(
            "lspci: Unable to load libkmod resources: error -2\n{}\n{}\tKernel driver in use: x\n",
            function("00:00.0", "5A"),
            function("10000:e1:1f.7", "01").replace("\n00:", "\n\tSubsystem: y\n\n00:"),
        );
        let mut dump = parse(&text.replace('\n', "\r\n")).unwrap();
        let far = "10000:e1:1f.7".parse().unwrap();
        assert_eq!(dump.snapshot.known().unwrap().len(), 2);
        assert_eq!(dump.snapshot.read(PciAddress::new(0, 0, 0, 0), 60), 0x5a5a_5a5a);
        assert_eq!((dump.snapshot.read(far, 0), dump.snapshot.bytes(far)), (0x0101_0101, 64));
        assert_eq!(dump.names[&far], "Some Maker A thing");
        let returns = parse(&text.replace('\n', "\r")).unwrap();
        assert_eq!(returns.names, dump.names);
        let mixed = parse(&text.replacen('\n', "\r\n", 5)).unwrap();
        assert_eq!(mixed.names, dump.names);
    }

    /// The lines of `-v` and `-vv` on interrupts and drivers, in the wording of old and new
    /// versions.
    #[test]
    fn text_of_interrupts_and_drivers() {
        let with = |address, text: &str| {
            let mut lines = function(address, "00");
            let header = lines.find('\n').unwrap() + 1;
            lines.insert_str(header, &format!("\t{text}\n"));
            lines
        };
        let text = with("00:01.0", "Interrupt: pin B routed to IRQ 17")
            + &with("00:02.0", "Flags: bus master, fast devsel, latency 0, IRQ 209")
            + &with("00:03.0", "Flags: bus master, IRQ 16, NUMA node 1, IOMMU group 5")
            + &with("00:04.0", "Interrupt: pin ? routed to IRQ 255")
            + &with("00:05.0", "Interrupt: pin A routed to IRQ 0")
            + &with("00:06.0", "Kernel driver in use: vfio-pci")
            + &with("00:08.0", "Region 0: Memory at d0 (64-bit, prefetchable) [size=256M]")
            + &with("00:09.0", "Region 5: I/O ports at e000 [disabled] [size=32]")
            + &with("00:0a.0", "Region 1: Memory at <unassigned> (32-bit) [size=4X]")
            + &with("00:0b.0", "Region 6: Memory at d0 [size=99999999999T]")
            + &with("00:07.0", "Flags: fast devsel, IRQ x");
        let dump = parse(&text).unwrap();
        let at = |device| PciAddress::new(0, 0, device, 0);
        let expected = [(at(1), 17), (at(2), 209), (at(3), 16)];
        assert_eq!(dump.interrupts, BTreeMap::from(expected));
        assert_eq!(dump.drivers, BTreeMap::from([(at(6), "vfio-pci".to_owned())]));
        let sizes = [((at(8), 0), 256 << 20), ((at(9), 5), 32)];
        assert_eq!(dump.bar_bytes, BTreeMap::from(sizes));
    }

    /// Mail programs quote lines and break long ones.
    #[test]
    fn dumps_out_of_mails() {
        let text = function("00:01.0", "5a")
            .replace("A thing (rev 02)", "A thing with a name that is\nlong (rev 02) (prog-if 00)")
            .replace(
                "00: 5a",
                "\tCapabilities: [90] Message Signalled Interrupts: 64bit-\nQueue=0/0\n00: 5a",
            );
        let at = PciAddress::new(0, 0, 1, 0);
        for quoted in [text.clone(), text.replace('\n', "\n> "), text.replace('\n', "\n>> ")] {
            let mut dump = parse(&quoted).unwrap();
            assert_eq!(dump.names[&at], "Some Maker A thing with a name that is long");
            assert_eq!(dump.snapshot.read(at, 60), 0x5a5a_5a5a);
        }
        // After the bytes there is nothing to be broken.
        assert_eq!(skipped(&format!("{text}Queue=0/0\n")), [(9, Garbled::Unknown)]);
    }

    /// Trackers display a block of text unchanged if all of it is indented.
    #[test]
    fn dumps_that_are_indented_as_a_whole() {
        let text = function("00:01.0", "5a")
            .replace("00: 5a", "\tFlags: bus master, fast devsel, latency 0, IRQ 209\n00: 5a");
        let text = format!("{text}\n{}", function("01:00.0", "a5"));
        for indent in ["    ", "\t", "> "] {
            let indented = text.replace('\n', &format!("\n{indent}"));
            let mut dump = parse(&format!("{indent}{indented}")).unwrap();
            let (first, second) = (PciAddress::new(0, 0, 1, 0), PciAddress::new(0, 1, 0, 0));
            assert_eq!(dump.snapshot.read(first, 60), 0x5a5a_5a5a);
            assert_eq!(dump.snapshot.read(second, 60), 0xa5a5_a5a5);
            assert_eq!(dump.interrupts, BTreeMap::from([(first, 209)]));
        }
    }

    #[test]
    fn garbled_lines_are_named() {
        let good = function("00:00.0", "00");
        assert_eq!(error(""), (1, Garbled::Empty));
        assert_eq!(error("00: 00\n"), (1, Garbled::NoFunction));
        let tree = format!("{good}-[0000:00]-+-00.0\n");
        assert_eq!(skipped(&tree), [(6, Garbled::Unknown)]);
        // Its bytes are not attributed to the previous function.
        let no_such = good.replace("00:00.0", "00:20.0");
        let gap = Garbled::Offset { found: 0, expected: 0x40 };
        assert_eq!(error(&format!("{good}{no_such}")), (7, gap));
        assert_eq!(error(&good.replace("30: 00 00", "30: 0g 00")), (5, Garbled::Bytes));
        assert_eq!(error(&good.replace("30: 00 00", "30: 000 0")), (5, Garbled::Bytes));
        assert_eq!(error(&good.replace("30: ", "30: 00 ")), (5, Garbled::Bytes));
        let gap = Garbled::Offset { found: 0x30, expected: 0x20 };
        assert_eq!(error(&good.replace("20: 00", "30: 00")), (4, gap));
        let again = PciAddress::new(0, 0, 0, 0);
        assert_eq!(error(&format!("{good}{good}")), (6, Garbled::Twice(again)));
        let cut = good.split("30:").next().unwrap();
        let no_header = Garbled::NoHeader { address: again, bytes: 48 };
        assert_eq!(error(cut), (1, no_header), "the place is the function's own line");
        assert!(parse(cut).unwrap_err().to_string().contains("lspci -xxxx"));
    }

    #[test]
    fn a_space_has_an_end() {
        let mut text = function("00:00.0", "00");
        for line in 4..=256 {
            text += &format!("{line:x}0:{}\n", " 00".repeat(16));
        }
        assert_eq!(error(&text).0, 258, "256 lines are 4096 bytes");
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "([0-9a-f:. \t]{0,40}\n){0,12}") {
            let _ = parse(&text);
        }

        #[test]
        fn images_survive(images in prop::collection::btree_map(any::<u8>(), prop::collection::vec(any::<u8>(), 64..=256), 1..4)) {
            let mut text = String::new();
            for (bus, image) in &images {
                text += &format!("{bus:02x}:1f.3 A\n");
                for (index, line) in image.chunks(16).enumerate() {
                    text += &format!("{:02x}:", 16 * index);
                    line.iter().for_each(|byte| text += &format!(" {byte:02x}"));
                    text += "\n";
                }
            }
            let mut dump = parse(&text).unwrap().snapshot;
            prop_assert_eq!(dump.len(), images.len());
            for (bus, image) in images {
                let at = PciAddress::new(0, bus, 31, 3);
                prop_assert_eq!(usize::from(dump.bytes(at)), image.len() & !3);
                for (index, dword) in image.chunks_exact(4).enumerate() {
                    let expected = u32::from_le_bytes(dword.try_into().unwrap());
                    prop_assert_eq!(dump.read(at, 4 * index as u16), expected);
                }
            }
        }
    }
}
