//! Class codes (PCI Code and ID Assignment 1.11, chapter 1).

/// Name of base class `base`.
pub fn class_name(base: u8) -> &'static str {
    match base {
        0x00 => "Device without a class",
        0x01 => "Mass storage controller",
        0x02 => "Network controller",
        0x03 => "Display controller",
        0x04 => "Multimedia controller",
        0x05 => "Memory controller",
        0x06 => "Bridge",
        0x07 => "Communication controller",
        0x08 => "System peripheral",
        0x09 => "Input device",
        0x0a => "Docking station",
        0x0b => "Processor",
        0x0c => "Serial bus controller",
        0x0d => "Wireless controller",
        0x0e => "Intelligent controller",
        0x0f => "Satellite communication controller",
        0x10 => "Encryption controller",
        0x11 => "Signal processing controller",
        0x12 => "Processing accelerator",
        0x13 => "Non-essential instrumentation",
        0x40 => "Co-processor",
        _ => "Device of unknown class",
    }
}

/// Name of `class`, consisting of base class, subclass and programming interface as in 0x010802;
/// the name of the base class if the subclass has none here.
pub fn subclass_name(class: u32) -> &'static str {
    let (base, subclass) = ((class >> 16) as u8, (class >> 8) as u8);
    match (base, subclass) {
        (0x01, 0x00) => "SCSI controller",
        (0x01, 0x01) => "IDE controller",
        (0x01, 0x02) => "Floppy disk controller",
        (0x01, 0x04) => "RAID controller",
        (0x01, 0x05) => "ATA controller",
        (0x01, 0x06) => "SATA controller",
        (0x01, 0x07) => "SAS controller",
        (0x01, 0x08) if class as u8 == 0x02 => "NVM Express controller",
        (0x01, 0x08) => "Non-volatile memory controller",
        (0x01, 0x09) => "Universal flash storage controller",
        (0x02, 0x00) => "Ethernet controller",
        (0x02, 0x07) => "InfiniBand controller",
        (0x02, 0x08) => "Fabric controller",
        (0x03, 0x00) => "VGA compatible controller",
        (0x03, 0x02) => "3D controller",
        (0x04, 0x01) => "Audio controller",
        (0x04, 0x03) => "High definition audio controller",
        (0x05, 0x00) => "RAM memory",
        (0x05, 0x02) => "CXL memory",
        (0x06, 0x00) => "Host bridge",
        (0x06, 0x01) => "ISA bridge",
        (0x06, 0x02) => "EISA bridge",
        (0x06, 0x04) => "PCI bridge",
        (0x06, 0x05) => "PCMCIA bridge",
        (0x06, 0x07) => "CardBus bridge",
        (0x06, 0x09) => "Semi-transparent PCI bridge",
        (0x07, 0x00) => "Serial controller",
        (0x07, 0x01) => "Parallel controller",
        (0x08, 0x00) => "Interrupt controller",
        (0x08, 0x01) => "DMA controller",
        (0x08, 0x02) => "Timer",
        (0x08, 0x03) => "Real-time clock",
        (0x08, 0x05) => "SD host controller",
        (0x08, 0x06) => "I/O memory management unit",
        (0x08, 0x07) => "Root complex event collector",
        (0x0c, 0x00) => "FireWire controller",
        (0x0c, 0x03) => "USB controller",
        (0x0c, 0x04) => "Fibre Channel controller",
        (0x0c, 0x05) => "SMBus",
        (0x0c, 0x07) => "IPMI controller",
        (0x0d, _) => "Wireless controller",
        (0x11, 0x01) => "Performance counters",
        _ => class_name(base),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subclass_without_a_name_has_that_of_its_class() {
        assert_eq!(subclass_name(0x01_08_02), "NVM Express controller");
        assert_eq!(subclass_name(0x01_08_01), "Non-volatile memory controller");
        assert_eq!(subclass_name(0x01_80_00), class_name(0x01));
        assert_eq!(subclass_name(0xff_00_00), "Device of unknown class");
    }
}
