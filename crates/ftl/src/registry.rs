//! Every FTL by its name: the one place where an FTL is registered.

use ssdyno_block::ConfigError;

use crate::agrawal::Agrawal;
use crate::bast::Bast;
use crate::block_map::BlockMap;
use crate::classes::{self, Classes};
use crate::dftl::Dftl;
use crate::fast::Fast;
use crate::log_blocks::BlockFtl;
use crate::page_map::PageMap;
use crate::{Ftl, FtlFacts, HotCold};

/// A registered FTL.
struct Entry {
    /// What `ftl.name` calls it.
    name: &'static str,
    /// A short description.
    description: &'static str,
    /// Makes a fresh one.
    make: fn(&FtlFacts<'_>) -> Result<Box<dyn Ftl>, ConfigError>,
}

const REGISTRY: &[Entry] = &[
    Entry {
        name: "page",
        description: "page map: any page anywhere",
        make: |facts| {
            classes::check(facts.config)?;
            match facts.config.hot_cold {
                HotCold::Classes => Ok(Box::new(Classes::new(facts)?)),
                HotCold::Off | HotCold::Survivors => Ok(Box::new(PageMap::new(facts)?)),
            }
        },
    },
    Entry {
        name: "dftl",
        description: "page map of which only a part is in RAM (demand-paged)",
        make: |facts| Ok(Box::new(Dftl::new(facts)?)),
    },
    Entry {
        name: "block",
        description: "block map: whole blocks only",
        make: |facts| Ok(Box::new(BlockFtl::<BlockMap>::new(facts)?)),
    },
    Entry {
        name: "bast",
        description: "block map with a log block for each block being written",
        make: |facts| Ok(Box::new(BlockFtl::<Bast>::new(facts)?)),
    },
    Entry {
        name: "fast",
        description: "block map with log blocks shared by all blocks",
        make: |facts| Ok(Box::new(BlockFtl::<Fast>::new(facts)?)),
    },
    Entry {
        name: "agrawal",
        description: "page map of the simulator behind S3, with its cleaning",
        make: |facts| Ok(Box::new(Agrawal::new(facts)?)),
    },
];

/// Names of all FTLs.
pub fn names() -> impl Iterator<Item = &'static str> {
    REGISTRY.iter().map(|entry| entry.name)
}

/// Names of all FTLs, and what each is in a few words.
pub fn descriptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    REGISTRY.iter().map(|entry| (entry.name, entry.description))
}

/// Makes the FTL that `facts.config.name` names.
pub fn build(facts: &FtlFacts<'_>) -> Result<Box<dyn Ftl>, ConfigError> {
    let name = facts.config.name.as_str();
    let Some(entry) = REGISTRY.iter().find(|entry| entry.name == name) else {
        let known: Vec<_> = names().collect();
        return Err(ConfigError::new(
            "ftl.name",
            format!("there is no FTL `{name}`"),
            format!("use one of: {}", known.join(", ")),
        ));
    };
    // A key without effect would be taken for one that has some.
    if let Some(key) = facts.config.clone().leave_out_tables(|_| false).first() {
        let owner = key.split('.').nth(1).unwrap_or_default();
        return Err(ConfigError::new(
            key,
            format!("`{name}` does not have this key, which is one of `{owner}`"),
            format!("leave it out, or set ftl.name = \"{owner}\" (--set ftl.name={owner})"),
        ));
    }
    (entry.make)(facts)
}
