//! `ssdyno pci`: the functions of a machine, the bridges between them, and where interrupts arrive.

mod args;
mod describe;
mod source;
mod text;

use ssdyno_session::Failure;

use crate::output::Output;

pub(crate) use args::PciArgs;
pub(crate) use describe::PciOutput;

pub(crate) fn run(args: &PciArgs, output: Output) -> Result<(), Failure> {
    let machine = source::read(args)?;
    let described = describe::describe(&args.target, &machine, args.vortex_quirks);
    output.either(|| text::render(&described), || &described)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::args::{FirmwareArg, MachineArg};
    use super::*;

    /// Machines as QEMU and SeaBIOS show them.
    const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../pci/tests/data/");

    fn args(target: &str) -> PciArgs {
        PciArgs {
            target: target.to_owned(),
            mp_table: None,
            vortex_quirks: false,
            machine: None,
            firmware: None,
        }
    }

    fn saved(name: &str) -> PciArgs {
        let mp_table = Some(format!("{DATA}{name}.mp"));
        PciArgs { mp_table, ..args(&format!("{DATA}{name}.lspci")) }
    }

    fn described(args: &PciArgs) -> PciOutput {
        let machine = source::read(args).unwrap_or_else(|failure| panic!("{failure}"));
        describe::describe("MACHINE", &machine, args.vortex_quirks)
    }

    fn json(args: &PciArgs, at: &str) -> Value {
        let value = serde_json::to_value(described(args)).unwrap();
        let functions = value["functions"].as_array().unwrap();
        functions.iter().find(|function| function["address"] == at).unwrap().clone()
    }

    #[test]
    fn golden_tree_of_a_drive_behind_a_bridge() {
        insta::assert_snapshot!("bridge", text::render(&described(&saved("qemu-pc-bridge"))));
    }

    #[test]
    fn golden_tree_with_the_mistakes_of_the_thesis() {
        let args = PciArgs { vortex_quirks: true, ..saved("qemu-pc-two-bridges") };
        insta::assert_snapshot!("vortex_quirks", text::render(&described(&args)));
    }

    #[test]
    fn golden_tree_of_a_switch() {
        insta::assert_snapshot!("switch", text::render(&described(&saved("qemu-q35-switch"))));
    }

    /// The keys that other programs rely on.
    #[test]
    fn json_has_the_promised_shape() {
        let nvme = json(&saved("qemu-pc-bridge"), "0000:01:03.0");
        assert_eq!(nvme["class"], "storage");
        assert_eq!(nvme["parent"], "0000:00:05.0");
        assert_eq!(nvme["pin"], "INTA");
        assert_eq!(nvme["routed"]["via"], "interrupt-line");
        assert_eq!(nvme["routed"]["pin_at_root"], "INTD");
        assert_eq!(nvme["routed"]["irq"], 11);
        let capabilities = nvme["capabilities"].as_array().unwrap();
        let names: Vec<_> = capabilities.iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"msi-x") && names.contains(&"pci-express"), "{names:?}");
        let bars = serde_json::json!([{ "index": 0, "space": "memory", "wide": true,
            "prefetchable": false, "address": "0xfe800000", "bytes": null }]);
        assert_eq!(nvme["bars"], bars, "a dump without -vv does not tell sizes");
        let quirks = PciArgs { vortex_quirks: true, ..saved("qemu-pc-bridge") };
        let nvme = json(&quirks, "0000:01:03.0");
        assert_eq!(nvme["routed"]["irq"], 10, "the thesis takes the entry of another pin");
        assert_eq!(nvme["beside"]["specification"]["irq"], 11);
    }

    #[test]
    fn a_simulated_drive_that_firmware_does_not_know_is_set_up_all_the_same() {
        for (machine, at) in [
            (MachineArg::RootPort, "0000:01:00.0"),
            (MachineArg::Bridge, "0000:01:03.0"),
            (MachineArg::TwoBridges, "0000:02:03.0"),
            (MachineArg::Switch, "0000:04:00.0"),
        ] {
            let machine = Some(machine);
            let known = json(&PciArgs { machine, ..args("sim:nvme-tlc") }, at);
            assert_eq!(
                (&known["recognised_by_firmware"], &known["bootable"]),
                (&true.into(), &true.into())
            );
            assert!(known["routed"]["irq"].is_u64(), "{known}");
            let bar = &known["bars"][0];
            assert!(bar["address"].is_string() && bar["bytes"].is_u64(), "{bar}");
            let firmware = Some(FirmwareArg::OverlooksDevice);
            let args = PciArgs { machine, firmware, ..args("sim:nvme-tlc") };
            let unknown = json(&args, at);
            assert_eq!(unknown["bootable"], false);
            let text = text::render(&described(&args));
            assert!(text.contains("not recognised by firmware: usable, not bootable"), "{text}");
            let none = PciArgs { firmware: Some(FirmwareArg::None), ..args };
            assert_eq!(json(&none, at)["routed"]["via"], "none");
        }
    }

    /// The additional data of `-vv`: the interrupt of a pin, but not that of a message.
    #[test]
    fn text_of_a_dump_names_interrupts_and_drivers() {
        let plain = std::fs::read_to_string(format!("{DATA}qemu-pc-bridge.lspci")).unwrap();
        let line = plain.lines().find(|line| line.starts_with("01:03.0")).unwrap();
        let said = "\tInterrupt: pin A routed to IRQ 22\n\tKernel driver in use: nvme";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("saved");
        std::fs::write(&path, plain.replace(line, &format!("{line}\n{said}"))).unwrap();
        let nvme = json(&args(path.to_str().unwrap()), "0000:01:03.0");
        assert_eq!(nvme["routed"]["via"], "operating-system");
        assert_eq!((&nvme["routed"]["irq"], &nvme["driver"]), (&22.into(), &"nvme".into()));
    }

    /// Names were in Latin-1 once, and `-vv` tells sizes.
    #[test]
    fn old_names_and_printed_sizes() {
        let plain = std::fs::read_to_string(format!("{DATA}qemu-pc-bridge.lspci")).unwrap();
        let line = plain.lines().find(|line| line.starts_with("01:03.0")).unwrap();
        let said = "01:03.0 NVM: Int\u{e9}l\n\tRegion 0: Memory at fe800000 (64-bit) [size=16K]";
        let latin_1: Vec<u8> = plain.replace(line, said).chars().map(|c| c as u8).collect();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("saved");
        std::fs::write(&path, latin_1).unwrap();
        let nvme = json(&args(path.to_str().unwrap()), "0000:01:03.0");
        assert_eq!(
            (&nvme["name"], &nvme["bars"][0]["bytes"]),
            (&"Int\u{e9}l".into(), &16384.into())
        );
    }

    #[test]
    fn wrong_input_is_told_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("saved");
        let path = path.to_str().unwrap();
        std::fs::write(path, "00:00.0 Host bridge: x\n00: 86 80\n02: 8x\n").unwrap();
        let failure = source::read(&args(path)).err().unwrap();
        assert_eq!(failure.body().line, Some(3));
        assert!(failure.body().message.contains(":3: not up to 16"), "{}", failure.body().message);
        std::fs::write(path, "00:00.0 Host bridge: x\nnonsense\n").unwrap();
        let failure = source::read(&args(path)).err().unwrap();
        assert!(failure.body().message.contains(":1: function 0000:00:00.0 has 0"));
        for (target, part) in [("/no/such", "there is no target"), ("sim:nvme-tlk", "sim:nvme-tlk")]
        {
            let message = source::read(&args(target)).err().unwrap().body().message;
            assert!(message.contains(part), "{message}");
        }
        let table = PciArgs { mp_table: Some(path.to_owned()), ..saved("qemu-pc-bridge") };
        let message = source::read(&table).err().unwrap().body().message;
        assert!(message.contains("no MP table"), "{message}");
        let machine = PciArgs { machine: Some(MachineArg::Switch), ..saved("qemu-pc-bridge") };
        assert!(source::read(&machine).is_err(), "a saved machine is as it is");
    }
}
