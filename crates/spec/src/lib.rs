//! Wire layouts of NVMe, SCSI, iSCSI, PCI, NBD and vfio-user: data only, each field with its clause.
//!
//! Key types: [`nvme::SubmissionEntry`], [`nvme::CompletionEntry`] and the registers in
//! [`nvme::registers`]; offsets of configuration space in [`pci`]; the descriptor-ring card in
//! [`ring`]; the messages of [`vfio_user`]. Drivers, controllers and translators share them, so neither side can disagree with the
//! other about a layout by accident; tests compare them with byte dumps.
//!
//! Errors: none. Reading never fails; who reads decides what is valid.
//!
//! Not here: behaviour of any kind.

#![no_std]

/// Structures as they are on the wire: in C's order, without padding or alignment, to be read from any bytes and
/// written as bytes. `pub struct Name = 64 { … }` has 64 bytes, or is refused.
macro_rules! wire {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident $(= $bytes:tt)? {
            $($(#[$doc:meta])* pub $field:ident: $type:ty,)*
        }
    )*) => {
        $(
            $(#[$meta])*
            #[derive(
                Clone, Copy, PartialEq, Eq, Debug, ::zerocopy::FromBytes, ::zerocopy::IntoBytes,
                ::zerocopy::KnownLayout, ::zerocopy::Immutable, ::zerocopy::Unaligned,
            )]
            #[repr(C)]
            pub struct $name {
                $($(#[$doc])* pub $field: $type,)*
            }

            $(const _: () = assert!(size_of::<$name>() == $bytes);)?
        )*
    };
}

pub mod iscsi;
pub mod nbd;
pub mod nvme;
pub mod pci;
pub mod ring;
pub mod scsi;
pub mod vfio_user;
