//! Dumps in three forms, of controllers that nobody makes.

use proptest::prelude::*;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use ssdyno_pci::PciDevice;
use ssdyno_spec::nvme::{IdentifyController, PowerStateDescriptor};

use super::*;
use ssdyno_ssd::{Config, presets};

const TEXT: &str = "NVME Identify Controller:
vid       : 0x1b36
ssvid     : 0x1af4
sn        : S123 456
mn        : Some \"Maker\" Drive 2TB
fr        : 1.0B
rab       : 3
mdts      : 7
cntlid    : 0x1
ver       : 0x10300
  [4:4] : 0x1\tSomething that -H explains
apsta     : 0x1
tnvmcap   : 2,000
nn        : 4096
oncs      : 0x5f
vwc       : 0x7
subnqn    : nqn.2014-08.org.nvmexpress:uuid:0:1
ps      0 : mp:9.00W operational enlat:0 exlat:0 rrt:0 rrl:0
            rwt:0 rwl:0 idle_power:- active_power:-
ps      1 : mp:4.60W operational enlat:5 exlat:0 rrt:1 rrl:1
            rwt:1 rwl:1 idle_power:- active_power:-
ps      2 : mp:0.0500W non-operational enlat:2000 exlat:1000 rrt:2 rrl:2
            rwt:2 rwl:2 idle_power:- active_power:-
";

/// As a mail quotes it, once and twice.
#[test]
fn quoted_text_is_read() {
    let plain = IdCtrl::parse(text().as_bytes()).unwrap();
    for mark in ["> ", ">> ", ">"] {
        let quoted: Vec<String> = text().lines().map(|line| format!("{mark}{line}")).collect();
        assert_eq!(IdCtrl::parse(quoted.join("\n").as_bytes()), Ok(plain.clone()), "{mark}");
    }
}

fn text() -> String {
    TEXT.replace("2,000", "2000398934016")
}

/// The device file of `preset` with the settings over it.
fn applied(id: &IdCtrl, preset: &str) -> Config {
    let mut table: toml::Table = toml::from_str(presets::find(preset).unwrap().text).unwrap();
    for setting in id.settings() {
        let (key, value) = setting.split_once('=').unwrap();
        let (head, last) = key.split_once('.').unwrap();
        let value: toml::Table = toml::from_str(&format!("v = {value}")).unwrap();
        let inner = table.entry(head).or_insert_with(|| toml::Table::new().into());
        inner.as_table_mut().unwrap().insert(last.to_owned(), value["v"].clone());
    }
    Config::parse(&toml::to_string(&table).unwrap()).unwrap()
}

#[test]
fn text_becomes_keys() {
    let id = IdCtrl::parse(text().as_bytes()).unwrap();
    assert_eq!(
        id.settings(),
        [
            "nvme.version=\"1.3\"",
            "nvme.pci_vendor=6966",
            "nvme.model='Some \"Maker\" Drive 2TB'",
            "nvme.serial=\"S123 456\"",
            "nvme.firmware=\"1.0B\"",
            "nvme.max_transfer=\"512KiB\"",
            "nvme.arbitration_burst=8",
            "nvme.namespaces_max=1024",
            "buffer.protected=false",
            "nvme.operational_states=[{ power = \"9W\", entry_latency = \"0us\", exit_latency = \"0us\" }, \
             { power = \"4.6W\", entry_latency = \"5us\", exit_latency = \"0us\" }]",
            "power.states=[{ idle_after = \"150000us\", power = \"0.05W\", entry_latency = \"2000us\", \
             exit_latency = \"1000us\" }]",
        ]
    );
    let notes = id.notes().join("\n");
    for part in ["2000398934016 bytes", "Compare", "Verify", "Timestamp", "idle_after is assumed"] {
        // Version 1.3 has no Verify.
        assert_eq!(notes.contains(part), !["Compare", "Verify"].contains(&part), "{part}: {notes}");
    }
    let later = IdCtrl { version: Some(2 << 16), ..id };
    assert!(later.notes().iter().any(|note| note.contains("that the drive lacks: Verify")));
}

/// The simulated controller then says the same of itself.
#[test]
fn controller_says_what_the_dump_says() {
    let id = IdCtrl::parse(text().as_bytes()).unwrap();
    let config = applied(&id, "gen4-consumer");
    let ssd = ssdyno_ssd::Ssd::new(&config, 1).unwrap();
    let controller = crate::NvmeController::in_front_of(ssd, config.nvme_setup().unwrap()).unwrap();
    assert_eq!(controller.identity().vendor, 0x1b36);
    let again = IdCtrl::parse(controller.subsystem.identify_controller().as_bytes()).unwrap();
    let expected = IdCtrl {
        commands: again.commands,
        capacity_bytes: again.capacity_bytes,
        // Bits 2:1 came with version 1.4.
        write_cache: Some(1),
        namespaces: Some(1024),
        ..id
    };
    assert_eq!(again, expected);
}

#[test]
fn three_forms_say_the_same() {
    let id = IdCtrl::parse(text().as_bytes()).unwrap();
    let json = r#"{"vid":6966,"ssvid":6900,"sn":"S123 456            ","mn":"Some \"Maker\" Drive 2TB",
        "fr":"1.0B    ","rab":3,"mdts":7,"ver":66304,"apsta":1,"tnvmcap":2000398934016,"npss":2,
        "nn":4096,"oncs":95,"vwc":7,"psds":[{"max_power":900,"flags":0},
        {"max_power":460,"max_power_scale":0,"non-operational_state":0,"entry_lat":5,"exit_lat":0},
        {"max_power":500,"flags":3,"entry_lat":2000,"exit_lat":1000},{"max_power":0,"flags":0}]}"#;
    assert_eq!(IdCtrl::parse(json.as_bytes()), Ok(id.clone()));
    let mut raw = IdentifyController::new_zeroed();
    raw.vendor = 0x1b36.into();
    raw.serial = *b"S123 456            ";
    raw.model[..22].copy_from_slice(b"Some \"Maker\" Drive 2TB");
    raw.firmware[..4].copy_from_slice(b"1.0B");
    (raw.arbitration_burst, raw.max_transfer, raw.autonomous_power) = (3, 7, 1);
    (raw.power_states, raw.volatile_write_cache) = (2, 7);
    raw.version = 0x10300.into();
    raw.nvm_commands = 0x5f.into();
    raw.namespaces = 4096.into();
    raw.total_capacity = 2_000_398_934_016.into();
    raw.power_state[0].max_power = 900.into();
    raw.power_state[1].max_power = 460.into();
    raw.power_state[1].entry_latency_us = 5.into();
    raw.power_state[2].flags =
        PowerStateDescriptor::FINE_POWER | PowerStateDescriptor::NON_OPERATIONAL;
    raw.power_state[2].max_power = 500.into();
    raw.power_state[2].entry_latency_us = 2000.into();
    raw.power_state[2].exit_latency_us = 1000.into();
    assert_eq!(IdCtrl::parse(raw.as_bytes()), Ok(id));
}

#[test]
fn old_and_odd_controllers() {
    // Versions were printed in hexadecimal without a prefix; 0 was before 1.2.
    for (ver, version, exact) in [
        ("10200", "1.2", true),
        ("0x10201", "1.2", false),
        ("0", "1.1", true),
        ("0x20100", "2.0", false),
        ("0x10400", "1.4", true),
    ] {
        let id = IdCtrl::parse(format!("mn : x\nver     : {ver}\n").as_bytes()).unwrap();
        assert!(id.settings().contains(&format!("nvme.version=\"{version}\"")), "{ver}");
        assert_eq!(id.notes().iter().any(|n| n.contains("is shown as")), !exact, "{ver}");
    }
    let unlimited = IdCtrl::parse(b"mdts : 0\r\nrab : 7\r\nvwc : 0\r\nnn : 0\r\n").unwrap();
    assert_eq!(
        unlimited.settings(),
        [
            "nvme.max_transfer=\"4096KiB\"",
            "nvme.arbitration_burst=\"unlimited\"",
            "nvme.namespaces_max=1",
            "buffer.protected=true"
        ]
    );
    assert!(unlimited.notes().iter().any(|note| note.starts_with("no limit")));
}

#[test]
fn what_is_no_dump_is_refused_with_its_place() {
    let error = |dump: &[u8]| IdCtrl::parse(dump).unwrap_err().to_string();
    assert!(error(b"").starts_with("no field"));
    assert!(error(b"some text\nof nobody: x\n").starts_with("no field"));
    assert_eq!(error(b"mn : x\nmdts : many\n"), "line 2: `mdts` cannot be `many`");
    assert_eq!(error(b"mn : x\nmdts : 256\n"), "line 2: `mdts` cannot be `256`");
    assert!(error(b"mn : x\nmn : y\n").starts_with("line 2: `mn` appears twice"));
    assert!(error(b"ps 1 : mp:1W operational\n").starts_with("line 1: `ps 1`"));
    assert!(error(b"ps 0 : mp:lots operational\n").starts_with("line 1: `ps 0`"));
    assert!(error(b"{ \"mn\": ").starts_with("not the JSON"));
    assert!(error(&[0; 512]).contains("512 bytes"));
    assert!(error(b"{\"mn\":\"x\",\"psds\":[{\"max_power\":70000}]}").contains("psds"));
}

/// A drive that does not respond reads as ones, and an unfilled buffer as zeroes.
#[test]
fn structures_that_nobody_filled_are_refused() {
    let text = |vid: &str, sign: &str| format!("vid : {vid}\nsn : {sign}\nmn : {sign}\nmdts : 0\n");
    let latin = |text: String| text.chars().map(|c| c as u8).collect::<Vec<u8>>();
    for (what, dumps) in [
        (
            "zeroes",
            [vec![0; 4096], latin(text("0", "")), b"{\"vid\":0,\"sn\":\"\",\"mn\":\"\"}".to_vec()],
        ),
        (
            "ones",
            [
                vec![0xff; 4096],
                latin(text("0xffff", "\u{ff}\u{ff}")),
                b"{\"vid\":65535,\"sn\":\"\",\"mn\":\"\"}".to_vec(),
            ],
        ),
    ] {
        for dump in dumps {
            let error = IdCtrl::parse(&dump).unwrap_err();
            assert!(matches!(error, IdCtrlError::Unfilled { .. }), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
    }
    // One field of a controller is enough, and missing fields prove nothing.
    for (vid, sign) in [("0", "x"), ("0x1b36", ""), ("0xfffe", "")] {
        assert!(IdCtrl::parse(text(vid, sign).as_bytes()).is_ok(), "{vid} {sign}");
    }
    assert!(IdCtrl::parse(b"vid : 0\nmdts : 5\n").is_ok());
}

/// nvme-cli groups the digits of a capacity according to the locale, and the explanations of `-H` may be saved in other
/// encodings.
#[test]
fn locales_and_encodings_are_read() {
    let text = |capacity: &str| {
        format!(
            "mn : A drive\nwctemp : 350\n [15:0] : 77 \u{b0}C (350 K)\ntnvmcap   : {capacity}\n"
        )
    };
    for grouped in [
        "3840755982336",
        "3,840,755,982,336",
        "3.840.755.982.336",
        "3'840'755'982'336",
        "3\u{2019}840\u{2019}755\u{2019}982\u{2019}336",
        "3 840 755 982 336",
        "3\u{a0}840\u{a0}755\u{a0}982\u{a0}336",
        "3\u{202f}840\u{202f}755\u{202f}982\u{202f}336",
    ] {
        let text = text(grouped);
        let read = |dump: &[u8]| IdCtrl::parse(dump).unwrap().capacity_bytes;
        assert_eq!(read(text.as_bytes()), Some(3_840_755_982_336), "{grouped}");
        let latin: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
        assert!(latin.is_none_or(|latin| read(&latin) == Some(3_840_755_982_336)), "{grouped}");
        for order in [u16::to_le_bytes, u16::to_be_bytes] {
            let wide: Vec<u8> =
                "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(order).collect();
            assert_eq!(read(&wide), Some(3_840_755_982_336), "{grouped}");
        }
    }
    // No groups of three, or of several kinds, or what is not a number of this kind.
    for wrong in
        ["3,84", "38,40,755", "3,840.755", "3,840,", ",840", "3840,755", "0x3,840", "1.5e9"]
    {
        let refused = IdCtrl::parse(text(wrong).as_bytes()).unwrap_err().to_string();
        assert_eq!(refused, format!("line 4: `tnvmcap` cannot be `{wrong}`"));
    }
    assert!(IdCtrl::parse(b"\xff\xfe\x00").is_err(), "half a character");
}

/// NVMe wants ASCII (base 2.0c, clause 1.4.2). A field with invalid characters is simulated without them, and reported:
/// the field, its line, the old value and the new value.
#[test]
fn texts_that_are_not_ascii_are_told() {
    let told = |dump: &[u8]| {
        let id = IdCtrl::parse(dump).unwrap();
        let about: Vec<_> = id.notes().into_iter().filter(|note| note.contains("ASCII")).collect();
        (id, about)
    };
    let text = "vid : 0x144d\nmn : S\u{fc}mdrive \u{9a71}\nsn : 12 34\nfr : \u{e9}1\n";
    let (id, notes) = told(text.as_bytes());
    assert_eq!((id.model.as_deref(), id.firmware.as_deref()), (Some("S mdrive"), Some("1")));
    assert_eq!(notes.len(), 2, "{notes:?}");
    let expected = "`mn` in line 2 is `S\u{fc}mdrive \u{9a71}`, which is not ASCII as NVM Express requires \
                    (base 2.0c, clause 1.4.2): `S mdrive` is simulated";
    assert_eq!(notes[0], expected);
    assert!(notes[1].starts_with("`fr` in line 4"), "{notes:?}");
    let (_, notes) = told("{\"vid\":1,\"mn\":\"Dr\u{ee}ve\"}".as_bytes());
    assert!(notes[0].starts_with("`mn` is `Dr\u{ee}ve`, which"), "{notes:?}");
    let mut raw = IdentifyController::new_zeroed();
    raw.vendor = 1.into();
    raw.model[..6].copy_from_slice(b"Dr\xeeve\x01");
    raw.serial[..2].copy_from_slice(b"12");
    let (_, notes) = told(raw.as_bytes());
    assert_eq!(notes.len(), 1, "zeroes at the end are none of it: {notes:?}");
    assert!(notes[0].contains("`Dr\u{ee}ve\\u{1}`"), "{notes:?}");
    assert_eq!(told(self::text().as_bytes()).1, [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_structure_makes_a_device_file(raw in prop::collection::vec(any::<u8>(), 4096)) {
        let structure = IdentifyController::read_from_bytes(&raw).unwrap();
        let id = IdCtrl::parse(&raw).unwrap();
        prop_assert_eq!(id.power_states.len(), usize::from(structure.power_states).min(31) + 1);
        let config = applied(&id, "gen4-consumer");
        prop_assert!(config.nvme.is_some());
        prop_assert!(!id.notes().is_empty());
    }

    #[test]
    fn any_text_ends(text in "((vid|mn|mdts|ver|ps 0|nn|vwc|\\{)[ :x0-9a-fW\"]{0,20}\n){0,12}") {
        let _ = IdCtrl::parse(text.as_bytes());
    }
}
