//! The table of quirks beside Linux's own: `cargo xtask quirks FILE`, where FILE is `drivers/nvme/host/pci.c` of the
//! version that the table names. Nothing of Linux is stored here.

use std::collections::BTreeMap;

use ssdyno_driver_nvme::Quirks;

/// The file, if there is one.
const VARIABLE: &str = "SSDYNO_LINUX_NVME_PCI_C";

/// Linux's quirks that this driver knows.
const KNOWN: &[(&str, Quirks)] = &[
    ("STRIPE_SIZE", Quirks::STRIPE_IS_MAX_TRANSFER),
    ("IDENTIFY_CNS", Quirks::NO_NAMESPACE_LIST),
    ("DELAY_BEFORE_CHK_RDY", Quirks::DELAY_BEFORE_READY),
    ("DISABLE_WRITE_ZEROES", Quirks::NO_WRITE_ZEROES),
    ("MEDIUM_PRIO_SQ", Quirks::MEDIUM_PRIORITY),
    ("SINGLE_VECTOR", Quirks::SINGLE_VECTOR),
    ("BROKEN_MSI", Quirks::BROKEN_MSI),
    ("QDEPTH_ONE", Quirks::ONE_COMMAND),
    ("SKIP_CID_GEN", Quirks::NO_GENERATION),
    ("128_BYTES_SQES", Quirks::ENTRIES_OF_128_BYTES),
    ("SHARED_TAGS", Quirks::ENTRIES_OF_128_BYTES),
    ("DMAPOOL_ALIGN_512", Quirks::LISTS_OF_512_BYTES),
    ("NO_APST", Quirks::NO_AUTONOMOUS_POWER),
    ("NO_DEEPEST_PS", Quirks::NO_DEEPEST_POWER),
    ("SIMPLE_SUSPEND", Quirks::SUSPEND_BY_SHUTDOWN),
];

/// Those of what this driver does not use: a new one is to be looked at.
const UNUSED: &[&str] = &[
    "DEALLOCATE_ZEROES",
    "IGNORE_DEV_SUBNQN",
    "BOGUS_NID",
    "NO_TEMP_THRESH_CHANGE",
    "NO_SECONDARY_TEMP_THRESH",
    "NO_NS_DESC_LIST",
    "DMA_ADDRESS_BITS_48",
];

/// Vendors that Linux names by words.
const VENDORS: &[(&str, u16)] =
    &[("INTEL", 0x8086), ("REDHAT", 0x1b36), ("AMAZON", 0x1d0f), ("APPLE", 0x106b)];

type Table = BTreeMap<(u16, u16), Quirks>;

/// `nvme_id_table` of `source`, as far as this driver knows its quirks. The first entry of a device counts, as it
/// does for Linux.
fn linux_table(source: &str) -> Result<Table, String> {
    let (_, rest) = source.split_once("nvme_id_table[] = {").ok_or("there is no nvme_id_table")?;
    let (body, _) = rest.split_once("\n};").ok_or("nvme_id_table has no end")?;
    let body = without_comments(body).replace("PCI_VENDOR_ID_", "");
    let mut table = Table::new();
    for entry in body.split("{ PCI_").skip(1) {
        if entry.starts_with("DEVICE_CLASS(") {
            continue;
        }
        let ids = entry.strip_prefix("DEVICE(").or(entry.strip_prefix("VDEVICE("));
        let (key, quirks) =
            entry_of(ids.ok_or_else(|| format!("neither device nor class: {entry}"))?)?;
        table.entry(key).or_insert(quirks);
    }
    Ok(table)
}

fn entry_of(entry: &str) -> Result<((u16, u16), Quirks), String> {
    let wrong = || format!("no vendor and device: {entry}");
    let (ids, rest) = entry.split_once(')').ok_or_else(wrong)?;
    let (vendor, device) = ids.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| {
        let named = VENDORS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        let hex = || u16::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        named.or_else(hex).ok_or_else(|| format!("what is `{text}`? ({entry})"))
    };
    let mut quirks = Quirks::NONE;
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    for rest in rest.split("NVME_QUIRK_").skip(1) {
        let name = rest.split(|c| !is_name(c)).next().unwrap_or_default();
        let known = KNOWN.iter().find(|(linux, _)| *linux == name);
        match known {
            Some((_, own)) => quirks |= *own,
            None if UNUSED.contains(&name) => {}
            None => return Err(format!("is {name} a quirk that matters to this driver?")),
        }
    }
    Ok(((number(vendor.trim())?, number(device.trim())?), quirks))
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once("*/").map_or("", |(_, after)| after));
    }
    plain
}

/// Where the two tables differ, one line each.
fn differences(linux: &Table) -> Vec<String> {
    let own: Table =
        Quirks::devices().map(|(vendor, device, quirks)| ((vendor, device), quirks)).collect();
    let keys: std::collections::BTreeSet<_> = linux.keys().chain(own.keys()).collect();
    let of = |table: &Table, key: &(u16, u16)| table.get(key).copied().unwrap_or(Quirks::NONE);
    let differ = keys.into_iter().filter(|key| of(linux, key) != of(&own, key));
    let line = |key: &(u16, u16)| {
        let (there, here) = (of(linux, key), of(&own, key));
        format!("{:04x}:{:04x}: Linux {there:?}, here {here:?}", key.0, key.1)
    };
    differ.map(line).collect()
}

#[test]
fn the_table_of_quirks_is_that_of_linux() {
    let Some(path) = std::env::var_os(VARIABLE) else {
        println!("skipped: {VARIABLE} names no drivers/nvme/host/pci.c of Linux");
        return;
    };
    let source = std::fs::read_to_string(&path).unwrap();
    let linux = linux_table(&source).unwrap();
    let differ = differences(&linux);
    assert!(linux.len() > 50, "{} devices in {path:?}", linux.len());
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
    println!(
        "{} devices of Linux, {} of them with quirks here: the same",
        linux.len(),
        Quirks::devices().count()
    );
}

/// The reader of Linux's table, on one of our own.
#[test]
fn tables_in_linux_s_form_are_read() {
    let source = "int x;\nstatic const struct pci_device_id nvme_id_table[] = {\n\
        \t{ PCI_VDEVICE(INTEL, 0x0001),\t/* NVME_QUIRK_NO_APST, not yet */\n\
        \t\t.driver_data = NVME_QUIRK_STRIPE_SIZE |\n\t\t\tNVME_QUIRK_BOGUS_NID, },\n\
        \t { PCI_DEVICE(0x1E4b, 0xaB01), .driver_data = NVME_QUIRK_NO_DEEPEST_PS|NVME_QUIRK_QDEPTH_ONE },\n\
        \t{ PCI_DEVICE(0x1e4b, 0xab01), .driver_data = NVME_QUIRK_BROKEN_MSI },\n\
        \t{ PCI_DEVICE(PCI_VENDOR_ID_APPLE, 0x2003) },\n\
        \t{ PCI_DEVICE_CLASS(PCI_CLASS_STORAGE_EXPRESS, 0xffffff) },\n\t{ 0, }\n};\nint y;\n";
    let expected = Table::from([
        ((0x8086, 1), Quirks::STRIPE_IS_MAX_TRANSFER),
        ((0x1e4b, 0xab01), Quirks::NO_DEEPEST_POWER | Quirks::ONE_COMMAND),
        ((0x106b, 0x2003), Quirks::NONE),
    ]);
    assert_eq!(linux_table(source), Ok(expected));
    let new = source.replace("BROKEN_MSI", "BROKEN_AND_NEW");
    assert!(linux_table(&new).unwrap_err().contains("BROKEN_AND_NEW"));
    assert!(linux_table("").is_err());
    // A difference is reported from both sides.
    let own: Table = Quirks::devices().map(|(v, d, quirks)| ((v, d), quirks)).collect();
    assert_eq!(differences(&own), Vec::<String>::new());
    let (mut less, mut more) = (own.clone(), own);
    let first = *less.keys().next().unwrap();
    less.remove(&first);
    more.insert((1, 2), Quirks::BROKEN_MSI);
    assert_eq!((differences(&less).len(), differences(&more).len()), (1, 1));
}
