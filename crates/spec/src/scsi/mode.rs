//! Mode and log pages (SPC-4, 7.3 and 7.5; SBC-3, 6.3 and 6.4).

/// Page code of the read-write error recovery page (SBC-3, 6.4.7).
pub const READ_WRITE_ERROR_RECOVERY: u8 = 0x01;
/// Page code of the caching page (SBC-3, 6.4.5).
pub const CACHING: u8 = 0x08;
/// Page code of the control page (SPC-4, 7.5.8).
pub const CONTROL: u8 = 0x0a;
/// Page code of the power condition page (SPC-4, 7.5.13).
pub const POWER_CONDITION: u8 = 0x1a;
/// Page code of the informational exceptions control page (SBC-3, 6.4.6).
pub const INFORMATIONAL_EXCEPTIONS: u8 = 0x1c;
/// All pages.
pub const ALL_PAGES: u8 = 0x3f;
/// Subpage code: all subpages.
pub const ALL_SUBPAGES: u8 = 0xff;

/// Bytes of the page of this code with its header of two bytes; 0 where there is no such page.
pub const fn page_bytes(code: u8) -> usize {
    match code {
        READ_WRITE_ERROR_RECOVERY | CONTROL | INFORMATIONAL_EXCEPTIONS => 12,
        CACHING => 20,
        POWER_CONDITION => 40,
        _ => 0,
    }
}

/// Caching page, byte 2: write cache enable.
pub const CACHING_WCE: u8 = 1 << 2;
/// Control page, byte 2: sense data in descriptor format.
pub const CONTROL_D_SENSE: u8 = 1 << 2;
/// Control page, byte 4: software write protect.
pub const CONTROL_SWP: u8 = 1 << 3;

/// Device-specific parameter of the mode parameter header: the medium is write protected
/// (SBC-3, 6.4.1).
pub const DEVICE_SPECIFIC_WP: u8 = 1 << 7;
/// Device-specific parameter: the bits DPO and FUA are supported.
pub const DEVICE_SPECIFIC_DPOFUA: u8 = 1 << 4;

/// Log pages (SPC-4, 7.3; SBC-3, 6.3).
pub mod log {
    /// Which pages there are.
    pub const SUPPORTED: u8 = 0x00;
    /// Temperature.
    pub const TEMPERATURE: u8 = 0x0d;
    /// Start-stop cycle counter.
    pub const START_STOP: u8 = 0x0e;
    /// Solid state media.
    pub const SOLID_STATE_MEDIA: u8 = 0x11;
    /// Informational exceptions.
    pub const INFORMATIONAL_EXCEPTIONS: u8 = 0x2f;
}
