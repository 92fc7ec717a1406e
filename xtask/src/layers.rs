//! The layering of the house: a crate may use crates of lower layers only.
//!
//! The picture and its reasons are in `ARCHITECTURE.md`; the table here is what is enforced.

use crate::workspace::Workspace;

/// Top to bottom. A crate may depend on crates in rows below its own.
const LAYERS: &[&[&str]] = &[
    &["ssdyno"],
    // Front ends but the command line.
    &["ssdyno-python", "ssdyno-web"],
    // Everything that a front end can start.
    &["ssdyno-task"],
    &["ssdyno-papers", "ssdyno-pts", "ssdyno-sweep"],
    // Below the papers: one of them is about profiles.
    &["ssdyno-cluster", "ssdyno-profile"],
    &["ssdyno-session"],
    // The two runners know nothing of each other.
    &["ssdyno-bench", "ssdyno-rig", "ssdyno-verify"],
    &["ssdyno-host", "ssdyno-iscsi", "ssdyno-vfio"],
    // `serve`: simulated devices in the time on the wall, under the servers of whatever protocol.
    &["ssdyno-driver-nvme", "ssdyno-driver-ring", "ssdyno-scsi", "ssdyno-serve"],
    // Over any device: what a driver talks to. The ring card has an SSD's flash in it.
    &["ssdyno-controller-nvme", "ssdyno-controller-ring"],
    // Kinds of devices in crates of their own.
    &["ssdyno-disk", "ssdyno-ssd"],
    // What a device is needs no flash.
    &["ssdyno-device", "ssdyno-ftl", "ssdyno-safety"],
    &["ssdyno-flash"],
    &["ssdyno-energy"],
    &["ssdyno-report"],
    &["ssdyno-record"],
    &["ssdyno-figures"],
    &["ssdyno-workload"],
    &["ssdyno-engine"],
    // The connector: devices stand on it from below, drivers from above.
    // `prober`: the state of a machine, under whoever shows or keeps it.
    &["ssdyno-pci", "ssdyno-prober"],
    &["ssdyno-block"],
    &["ssdyno-spec"],
];

/// Crates outside the house: they may use nothing of it, and nothing may use them.
const OUTSIDE: &[&str] = &["xtask"];

/// Which dependency table an arrow stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Dev,
    Build,
}

/// One dependency between members of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Arrow {
    from: String,
    to: String,
    kind: Kind,
}

/// Every breach of the layering, as text that says what to do; empty when the house stands.
pub(crate) fn breaches(workspace: &Workspace) -> Vec<String> {
    let members: Vec<&str> = workspace.packages.iter().map(|p| p.name.as_str()).collect();
    let arrows: Vec<Arrow> = workspace
        .packages
        .iter()
        .flat_map(|p| p.dependencies.iter().map(move |d| (p, d)))
        .filter(|(_, dependency)| workspace.has(&dependency.name))
        .map(|(package, dependency)| Arrow {
            from: package.name.clone(),
            to: dependency.name.clone(),
            kind: match dependency.kind.as_deref() {
                Some("dev") => Kind::Dev,
                Some("build") => Kind::Build,
                _ => Kind::Normal,
            },
        })
        .collect();
    judge(&members, &arrows)
}

fn judge(members: &[&str], arrows: &[Arrow]) -> Vec<String> {
    let unknown = members.iter().filter(|name| layer(name).is_none() && !OUTSIDE.contains(name));
    let unknown = unknown.map(|name| {
        format!("`{name}` is in no layer: add it to LAYERS in xtask/src/layers.rs and to ARCHITECTURE.md")
    });
    unknown.chain(arrows.iter().filter_map(breach)).collect()
}

/// The row of a crate, counted from the top.
fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&name))
}

fn breach(arrow: &Arrow) -> Option<String> {
    let Arrow { from, to, kind } = arrow;
    let table = match kind {
        Kind::Normal => "dependencies",
        Kind::Dev => "dev-dependencies",
        Kind::Build => "build-dependencies",
    };
    // A crate may name itself in its dev-dependencies to switch a feature on for its tests.
    if from == to && *kind == Kind::Dev {
        return None;
    }
    if OUTSIDE.contains(&from.as_str()) || OUTSIDE.contains(&to.as_str()) {
        return Some(format!(
            "{from} -> {to} ([{table}]): xtask stands outside the house; drop it"
        ));
    }
    let (upper, lower) = (layer(from)?, layer(to)?);
    let direction = match lower.cmp(&upper) {
        std::cmp::Ordering::Greater => return None,
        std::cmp::Ordering::Equal => "points sideways",
        std::cmp::Ordering::Less => "points up",
    };
    let advice = match kind {
        Kind::Dev => format!("move the test to `{to}` or above"),
        Kind::Normal | Kind::Build => format!(
            "move what both need into a lower crate, or let `{to}` hand it down through a trait"
        ),
    };
    Some(format!("{from} -> {to} ([{table}]) {direction}: {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str, kind: Kind) -> Arrow {
        Arrow { from: from.to_owned(), to: to.to_owned(), kind }
    }

    fn judged(from: &str, to: &str, kind: Kind) -> Vec<String> {
        judge(&[from, to], &[arrow(from, to, kind)])
    }

    #[test]
    fn arrows_down_are_fine_for_every_pair_of_layers() {
        for (row, upper) in LAYERS.iter().enumerate() {
            for lower in LAYERS.iter().skip(row + 1) {
                for (from, to) in upper.iter().flat_map(|u| lower.iter().map(move |l| (u, l))) {
                    assert_eq!(judged(from, to, Kind::Normal), Vec::<String>::new());
                    let up = judged(to, from, Kind::Build);
                    assert_eq!(up.len(), 1, "{to} -> {from} must be refused");
                }
            }
        }
    }

    #[test]
    fn arrow_up_is_named_with_its_table_and_advice() {
        let found = judged("ssdyno-flash", "ssdyno-ftl", Kind::Normal).join("\n");
        assert!(found.contains("ssdyno-flash -> ssdyno-ftl ([dependencies]) points up"), "{found}");
        assert!(found.contains("lower crate"), "{found}");
    }

    #[test]
    fn dev_dependencies_obey_too() {
        let found = judged("ssdyno-block", "ssdyno-engine", Kind::Dev).join("\n");
        assert!(found.contains("[dev-dependencies]"), "{found}");
        assert!(found.contains("move the test to `ssdyno-engine` or above"), "{found}");
    }

    #[test]
    fn neighbours_may_not_use_each_other() {
        let found = judged("ssdyno-host", "ssdyno-iscsi", Kind::Normal).join("\n");
        assert!(found.contains("sideways"), "{found}");
    }

    #[test]
    fn unknown_crate_must_be_given_a_place() {
        let found = judge(&["ssdyno-attic"], &[]).join("\n");
        assert!(found.contains("`ssdyno-attic` is in no layer"), "{found}");
    }

    #[test]
    fn xtask_stands_apart() {
        assert!(judge(&["xtask"], &[]).is_empty());
        assert_eq!(judged("xtask", "ssdyno-block", Kind::Normal).len(), 1);
        assert_eq!(judged("ssdyno", "xtask", Kind::Dev).len(), 1);
    }

    #[test]
    fn table_names_each_crate_once() {
        let mut names: Vec<_> = LAYERS.iter().flat_map(|row| row.iter()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
