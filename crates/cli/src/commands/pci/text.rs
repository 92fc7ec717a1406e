//! The tree as text (S1-12).

use ssdyno_block::units::Bytes;

use super::describe::{BarOutput, FunctionOutput, LinkOutput, PciOutput, RoutedOutput, Says};

/// Data rate of a lane, in GT/s, by generation (PCIe clause 1.2).
const RATES: [&str; 7] = ["?", "2.5", "5", "8", "16", "32", "64"];

pub(super) fn render(output: &PciOutput) -> String {
    let mut lines = vec![head(output)];
    let mut root_bus = String::new();
    for root in behind(output, None) {
        // Segment and bus: what stands before the device.
        let bus = root.address.rsplit_once(':').map_or("", |(bus, _)| bus);
        if bus != root_bus {
            root_bus = bus.to_owned();
            lines.push(format!("\nroot bus {bus}"));
        }
        let last = behind(output, None).rfind(|other| other.address.starts_with(bus));
        branch(output, root, "", last.is_some_and(|l| l.address == root.address), &mut lines);
    }
    if !output.notes.is_empty() {
        lines.push("\nNotes".to_owned());
        lines.extend(output.notes.iter().map(|note| format!("  {note}")));
    }
    lines.join("\n") + "\n"
}

fn head(output: &PciOutput) -> String {
    let bridges = output.functions.iter().filter(|f| f.class == "bridge").count();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let functions = count(output.functions.len(), "function");
    let table = match &output.mp_table {
        None => "no MP table".to_owned(),
        Some(table) => format!(
            "MP table of {} {}: {}, {}, {}",
            table.oem,
            table.product,
            count(table.processors, "processor"),
            count(table.io_apics, "I/O APIC"),
            count(table.io_interrupts, "interrupt"),
        ),
    };
    format!("{}: {functions}, {}; {table}", output.target, count(bridges, "bridge"))
}

/// The functions whose parent is `parent`.
fn behind<'a>(
    output: &'a PciOutput,
    parent: Option<&'a str>,
) -> impl DoubleEndedIterator<Item = &'a FunctionOutput> {
    output.functions.iter().filter(move |function| function.parent.as_deref() == parent)
}

fn branch(
    output: &PciOutput,
    function: &FunctionOutput,
    indent: &str,
    last: bool,
    lines: &mut Vec<String>,
) {
    let corner = if last { "└─ " } else { "├─ " };
    lines.push(format!("{indent}{corner}{}", title(function)));
    let below = format!("{indent}{}", if last { "   " } else { "│  " });
    let children: Vec<&FunctionOutput> = behind(output, Some(&function.address)).collect();
    let bar = if children.is_empty() { "   " } else { "│  " };
    lines.extend(details(function).into_iter().map(|line| format!("{below}{bar}   {line}")));
    for (index, child) in children.iter().enumerate() {
        branch(output, child, &below, index + 1 == children.len(), lines);
    }
}

fn title(function: &FunctionOutput) -> String {
    let id = |text: &str| text.trim_start_matches("0x").to_owned();
    let FunctionOutput { address, class_name, vendor, device, .. } = function;
    let mut title = format!("{address} {class_name} [{}:{}]", id(vendor), id(device));
    if let Some(name) = &function.name {
        title += &format!(" {name}");
    }
    if let Some(buses) = function.buses {
        title += &match buses.secondary == buses.subordinate {
            true => format!(" -> bus {:02x}", buses.secondary),
            false => format!(" -> buses {:02x}-{:02x}", buses.secondary, buses.subordinate),
        };
    }
    title
}

fn details(function: &FunctionOutput) -> Vec<String> {
    let mut lines = Vec::new();
    let capabilities = capabilities(function);
    if !capabilities.is_empty() {
        lines.push(capabilities.join(", "));
    }
    if !function.bars.is_empty() {
        let bars: Vec<String> = function.bars.iter().map(bar_text).collect();
        lines.push(bars.join(", "));
    }
    if let (Some(pin), Some(routed)) = (&function.pin, &function.routed) {
        let way: Vec<String> =
            routed.path.iter().map(|step| format!("{} of {}", step.pin, step.bridge)).collect();
        let way: String = way.iter().map(|step| format!(" -> {step}")).collect();
        lines.push(format!("{pin}{way}: {}", arrival(routed)));
        // An entry of the MP table that nobody contradicts needs no words.
        let plain = matches!(routed.via, "mp-table" | "swizzle") && !routed.disagree;
        let direct = routed.via == "interrupt-line" && routed.path.is_empty();
        if !plain && !direct {
            lines.push(routed.explanation.clone());
        }
    }
    if let Some(beside) = &function.beside {
        let right = &beside.specification;
        let pin = right.pin_at_root.as_deref().unwrap_or("no pin");
        lines.push(format!("by the specification {pin} at the root: {}", arrival(right)));
        let (equation, table) =
            (&beside.pin_at_root_by_equation_2, &beside.pin_at_root_by_table_3_1);
        lines.push(format!("by equation 2 {equation}, by table 3.1 {table} at the root"));
    }
    match (function.class, function.interrupts) {
        ("bridge", _) => lines.push("passive: a bridge gets no interrupts itself".to_owned()),
        (_, Some(best)) => {
            let plural = if best.vectors == 1 { "" } else { "s" };
            lines.push(format!("best interrupts: {}, {} vector{plural}", best.mode, best.vectors));
        }
        _ => {}
    }
    if function.recognised_by_firmware == Some(false) {
        let bootable = if function.bootable.is_some() { ", not bootable" } else { "" };
        lines.push(format!("not recognised by firmware: usable{bootable}"));
    }
    lines.extend(function.driver.as_ref().map(|driver| format!("driver {driver}")));
    lines
}

/// `BAR 0 memory 16KiB at 0xfe800000 (64 bits)`.
fn bar_text(bar: &BarOutput) -> String {
    let bytes = bar.bytes.map(|bytes| format!(" {}", Bytes(bytes))).unwrap_or_default();
    let place =
        bar.address.as_ref().map_or("nowhere".to_owned(), |address| format!("at {address}"));
    let kind = match (bar.wide, bar.prefetchable) {
        (true, true) => " (64 bits, prefetchable)",
        (true, false) => " (64 bits)",
        (false, true) => " (prefetchable)",
        (false, false) => "",
    };
    format!("BAR {} {}{bytes} {place}{kind}", bar.index, bar.space)
}

/// The capabilities in words; equal ones once, with their number.
fn capabilities(function: &FunctionOutput) -> Vec<String> {
    let mut all: Vec<(String, usize)> = Vec::new();
    for text in function.capabilities.iter().filter_map(|capability| said(&capability.says)) {
        match all.iter_mut().find(|(other, _)| *other == text) {
            Some((_, count)) => *count += 1,
            None => all.push((text, 1)),
        }
    }
    let once = |(text, count)| if count == 1 { text } else { format!("{count} x {text}") };
    all.into_iter().map(once).collect()
}

fn arrival(routed: &RoutedOutput) -> String {
    match (routed.irq, routed.io_apic) {
        (Some(irq), Some(apic)) if matches!(routed.via, "mp-table" | "swizzle") => {
            format!("interrupt {irq} (I/O APIC {apic}) by {}", routed.via)
        }
        (Some(irq), _) => format!("interrupt {irq} by {}", routed.via),
        (None, _) => "the interrupt is not known".to_owned(),
    }
}

fn said(says: &Says) -> Option<String> {
    Some(match says {
        Says::PowerManagement { d1, d2, state, .. } => {
            let states = [(*d1, " D1"), (*d2, " D2")];
            let states: String = states.iter().filter(|s| s.0).map(|s| s.1).collect();
            let now = if *state == 0 { String::new() } else { format!(", now in D{state}") };
            format!("power D0{states} D3{now}")
        }
        Says::Msi { vectors, enabled, .. } => format!("MSI x{vectors}{}", on(*enabled)),
        Says::MsiX { vectors, table_bar, table_offset, enabled, .. } => {
            format!("MSI-X x{vectors} (BAR {table_bar} +{table_offset:#x}){}", on(*enabled))
        }
        Says::PciExpress { port, link, link_max, .. } => {
            format!("PCI Express {port}{}", link_text(*link, *link_max))
        }
        Says::BridgeSubsystem { vendor, device } => format!("subsystem {vendor}:{device}"),
        Says::SerialNumber { serial } => format!("serial number {serial}"),
        Says::Other { title: "null" | "unknown" } => return None,
        Says::Other { title } => (*title).to_owned(),
    })
}

fn on(enabled: bool) -> &'static str {
    if enabled { " on" } else { "" }
}

fn link_text(link: Option<LinkOutput>, link_max: Option<LinkOutput>) -> String {
    let text = |link: LinkOutput| {
        let rate = RATES.get(usize::from(link.generation)).unwrap_or(&RATES[0]);
        format!("{rate} GT/s x{}", link.lanes)
    };
    match (link.map(text), link_max.map(text)) {
        (Some(now), Some(max)) if now == max => format!(", {now}"),
        (Some(now), Some(max)) => format!(", {now} of {max}"),
        (Some(link), None) => format!(", {link}"),
        (None, Some(max)) => format!(", no link, {max} at most"),
        (None, None) => String::new(),
    }
}
