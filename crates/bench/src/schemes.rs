//! Names of targets behind a network, known on every system.

/// Whether `target` names a network target: `nbd:` and `iscsi:` and their variants, also those that are not supported.
pub fn is_network(target: &str) -> bool {
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| SCHEMES.iter().any(|one| one.eq_ignore_ascii_case(scheme)))
}

const SCHEMES: [&str; 8] =
    ["nbd", "nbd+unix", "nbds", "nbds+unix", "nbd+vsock", "nbds+vsock", "iscsi", "iser"];
