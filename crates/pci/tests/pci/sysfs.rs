//! The machine as Linux shows it, in files made for the test.

use std::fs;
use std::path::PathBuf;

use ssdyno_pci::config::ConfigAccess;
use ssdyno_pci::sysfs::{NoMpTable, mp_table, read};
use ssdyno_pci::{MpError, MpTable, PciAddress};

use crate::mp_write::to_memory;

/// A directory that goes away.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("ssdyno-pci-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn configuration_interrupts_and_drivers() {
    let scratch = Scratch::new("devices");
    for (name, irq) in [("0000:00:02.0", "11"), ("0000:01:00.0", "35"), ("0000:02:00.0", "0")] {
        let directory = scratch.0.join(name);
        fs::create_dir_all(directory.join("msi_irqs")).unwrap();
        fs::write(directory.join("config"), [0x55; 64]).unwrap();
        fs::write(directory.join("irq"), format!("{irq}\n")).unwrap();
    }
    // 35 is a message, so nothing is known of the pin.
    fs::write(scratch.0.join("0000:01:00.0/msi_irqs/35"), "msix\n").unwrap();
    std::os::unix::fs::symlink("../../drivers/nvme", scratch.0.join("0000:01:00.0/driver"))
        .unwrap();
    let resource = "0x00000000fe800000 0x00000000fe803fff 0x0000000000140204\n\
                    0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
                    0x000000000000e000 0x000000000000e01f 0x0000000000040101\ngarbled\n";
    fs::write(scratch.0.join("0000:01:00.0/resource"), resource).unwrap();
    fs::create_dir(scratch.0.join("0000:00:1f.0")).unwrap();
    fs::create_dir(scratch.0.join("no address")).unwrap();
    let mut system = read(&scratch.0).unwrap();
    let [first, second] = ["00:02.0", "01:00.0"].map(|at| at.parse::<PciAddress>().unwrap());
    assert_eq!(system.snapshot.len(), 3);
    assert_eq!((system.snapshot.read(first, 0), system.snapshot.bytes(first)), (0x5555_5555, 64));
    assert_eq!(system.interrupts.into_iter().collect::<Vec<_>>(), [(first, 11)]);
    assert_eq!(system.drivers.into_iter().collect::<Vec<_>>(), [(second, "nvme".to_owned())]);
    let sizes: Vec<_> = system.bar_bytes.into_iter().collect();
    assert_eq!(sizes, [((second, 0), 16 << 10), ((second, 2), 32)]);
    assert!(read(&scratch.0.join("nowhere")).unwrap_err().to_string().contains("nowhere"));
}

#[test]
fn the_mp_table_of_physical_memory() {
    let scratch = Scratch::new("memory");
    let table = MpTable { revision: 4, oem: "MAKER".into(), ..MpTable::default() };
    let file = scratch.0.join("mem");
    // In the extended BIOS data area, at the end of base memory, in the BIOS, and its table last.
    for at in [0x9_f800, 0x9_fc00, 0xf_5a90, 0xf_ff00] {
        let mut memory = vec![0; 1 << 20];
        memory[0x40e..0x410].copy_from_slice(&0x9f80_u16.to_le_bytes());
        let bytes = to_memory(&table, at);
        let at = at as usize;
        memory[at..at + bytes.len()].copy_from_slice(&bytes);
        fs::write(&file, &memory).unwrap();
        assert_eq!(mp_table(&file).unwrap(), table, "{at:#x}");
        memory[at + 20] ^= 1;
        fs::write(&file, &memory).unwrap();
        let damaged = mp_table(&file).unwrap_err();
        assert!(matches!(
            damaged,
            NoMpTable::Table(MpError::Checksum { .. } | MpError::Short { .. })
        ));
    }
    fs::write(&file, vec![0; 1 << 20]).unwrap();
    assert!(matches!(mp_table(&file), Err(NoMpTable::Table(MpError::Absent { .. }))));
    assert!(matches!(mp_table(&scratch.0.join("none")), Err(NoMpTable::Memory(_))));
}

/// MP clause 4.1: a default configuration has no table, whatever the pointer says.
#[test]
fn a_default_configuration_is_named_whatever_the_pointer_says() {
    let scratch = Scratch::new("default");
    let file = scratch.0.join("mem");
    for pointer in [0_u32, 0xf_8000, 0xfff0_0000] {
        let mut floating = b"_MP_".to_vec();
        floating.extend(pointer.to_le_bytes());
        floating.extend([1, 4, 0, 6, 0, 0, 0, 0]);
        floating[10] = floating.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b)).wrapping_neg();
        let mut memory = vec![0; 1 << 20];
        memory[0xf_5a90..0xf_5aa0].copy_from_slice(&floating);
        fs::write(&file, &memory).unwrap();
        let told = mp_table(&file);
        let named = matches!(told, Err(NoMpTable::Table(MpError::DefaultConfiguration(6))));
        assert!(named, "{pointer:#x}: {told:?}");
    }
}
