//! Headers of configuration space (PCI clause 6.1, Bridge clause 3.2).

/// Vendor identifier, 16 bits; 0xffff if nothing responds.
pub const VENDOR_ID: u16 = 0x00;
/// Command register, 16 bits.
pub const COMMAND: u16 = 0x04;
/// Status register, 16 bits.
pub const STATUS: u16 = 0x06;
/// Class code: revision in bits 7:0, programming interface, subclass, base class in 31:24.
pub const CLASS_REVISION: u16 = 0x08;
/// Header type, 8 bits: bit 7 multi-function, bits 6:0 layout.
pub const HEADER_TYPE: u16 = 0x0e;
/// First base address register.
pub const BAR0: u16 = 0x10;
/// Expansion ROM base address register of layout 0: bit 0 enables it, bits 31:11 are the address (PCI clause
/// 6.2.5.2).
pub const EXPANSION_ROM: u16 = 0x30;
/// The same of layout 1 (Bridge clause 3.2.5.13).
pub const EXPANSION_ROM_OF_BRIDGE: u16 = 0x38;
/// The ROM answers, where the command register lets memory answer.
pub const EXPANSION_ROM_ENABLE: u32 = 1;
/// The bits of its address.
pub const EXPANSION_ROM_ADDRESS: u32 = !0x7ff;
/// Pointer to the first capability, 8 bits; for layouts 0 and 1.
pub const CAPABILITIES: u16 = 0x34;
/// Interrupt line, 8 bits: what firmware routed.
pub const INTERRUPT_LINE: u16 = 0x3c;

/// Vendor of the subsystem, 16 bits; layout 0 only.
pub const SUBSYSTEM_VENDOR_ID: u16 = 0x2c;
/// Pointer to the first capability of a CardBus bridge, 8 bits (PC Card 8.0, clause 4.5).
pub const CARDBUS_CAPABILITIES: u16 = 0x14;

/// Header layout of endpoints: six base address registers.
pub const LAYOUT_ENDPOINT: u8 = 0;
/// Header layout of PCI-to-PCI bridges: two base address registers, bus numbers, windows.
pub const LAYOUT_BRIDGE: u8 = 1;
/// Header layout of CardBus bridges: bus numbers are at the offsets of a PCI-to-PCI bridge.
pub const LAYOUT_CARDBUS: u8 = 2;
/// Header type: there may be functions 1 to 7.
pub const HEADER_MULTI_FUNCTION: u8 = 0x80;

/// Bus numbers of a bridge: primary in 7:0, secondary, subordinate, secondary latency timer.
pub const BUS_NUMBERS: u16 = 0x18;
/// I/O window of a bridge: base in 7:0, limit in 15:8, secondary status in 31:16.
pub const IO_WINDOW: u16 = 0x1c;
/// Memory window of a bridge: base in 15:0, limit in 31:16, both with address bits 31:20 in 15:4.
pub const MEMORY_WINDOW: u16 = 0x20;
/// Prefetchable window of a bridge, as [`MEMORY_WINDOW`]; bits 3:0 tell of 64-bit addresses.
pub const PREFETCH_WINDOW: u16 = 0x24;
/// Bits 63:32 of the base of the prefetchable window.
pub const PREFETCH_BASE_UPPER: u16 = 0x28;
/// Bits 63:32 of the limit of the prefetchable window.
pub const PREFETCH_LIMIT_UPPER: u16 = 0x2c;
/// Bits 31:16 of the I/O window: base in 15:0, limit in 31:16.
pub const IO_WINDOW_UPPER: u16 = 0x30;

/// Command register: answer I/O accesses.
pub const COMMAND_IO: u16 = 1 << 0;
/// Command register: answer memory accesses.
pub const COMMAND_MEMORY: u16 = 1 << 1;
/// Command register: may act as bus master.
pub const COMMAND_BUS_MASTER: u16 = 1 << 2;
/// Command register: the pin is off.
pub const COMMAND_INTERRUPT_DISABLE: u16 = 1 << 10;
/// Status register: there is a list of capabilities.
pub const STATUS_CAPABILITIES: u16 = 1 << 4;

/// Base address register, bit 0: I/O space (PCI clause 6.2.5.1).
pub const BAR_IO: u32 = 1 << 0;
/// Base address register of memory, bits 2:1: where it may lie.
pub const BAR_TYPE: u32 = 3 << 1;
/// [`BAR_TYPE`] of a register that takes the next one as its upper half.
pub const BAR_TYPE_64: u32 = 2 << 1;
/// Base address register of memory, bit 3: prefetchable.
pub const BAR_PREFETCHABLE: u32 = 1 << 3;
/// Base address register of I/O space: the address.
pub const BAR_IO_ADDRESS: u32 = !0x3;
/// Base address register of memory: the address, its lower half.
pub const BAR_MEMORY_ADDRESS: u32 = !0xf;

/// Windows: the kind of addresses, in bits 3:0 of base and limit (Bridge clauses 3.2.5.6, 3.2.5.9).
pub const WINDOW_TYPE: u32 = 0xf;
/// [`WINDOW_TYPE`] of a window with upper halves: 32-bit I/O or 64-bit memory.
pub const WINDOW_WIDE: u32 = 0x1;
/// Step of a memory window, in bytes.
pub const MEMORY_WINDOW_BYTES: u64 = 1 << 20;
/// Step of an I/O window, in bytes.
pub const IO_WINDOW_BYTES: u64 = 1 << 12;

/// Configuration space of conventional PCI, in bytes.
pub const CONFIG_BYTES: u16 = 256;
/// Configuration space of PCI Express, in bytes (PCIe clause 7.2).
pub const EXTENDED_CONFIG_BYTES: u16 = 4096;
