//! Everything that needs Linux: all but the permit.

pub(crate) mod backing;
pub(crate) mod below;
pub(crate) mod create;
pub(crate) mod device;
pub(crate) mod disk_identity;
pub mod file_system;
pub(crate) mod inspect;
pub(crate) mod mark;
pub(crate) mod processes;
pub(crate) mod scratch;
pub(crate) mod signature;

pub use create::{Space, create, is_place_of_devices};
pub use disk_identity::DiskIdentity;
pub use inspect::{Consent, Export, Inspection, SafetyError, inspect, inspect_export};
pub use scratch::ScratchFile;
pub use signature::{Signature, signatures};
