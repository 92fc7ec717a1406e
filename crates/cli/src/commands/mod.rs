//! The verbs, a file each.

pub(crate) mod compare;
pub(crate) mod completion;
pub(crate) mod controller;
pub(crate) mod explain;
#[cfg(target_os = "linux")]
pub(crate) mod invite;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod papers;
pub(crate) mod pci;
pub(crate) mod plan;
#[cfg(target_os = "linux")]
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod pts;
pub(crate) mod recover;
pub(crate) mod repeat;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod sweep;
pub(crate) mod swept;
pub(crate) mod ui;
#[cfg(target_os = "linux")]
pub(crate) mod verify;
pub(crate) mod worker;
