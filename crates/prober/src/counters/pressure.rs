//! `/proc/pressure` (Documentation/accounting/psi.rst).

use std::collections::BTreeMap;

use crate::sources::{SourceError, SourceText, Sources};

const RESOURCES: [&str; 3] = ["cpu", "io", "memory"];

/// Microseconds of stall by resource and kind, such as `io_full`; `None` where the kernel does not count them
/// (`psi=0`: then the files are there and cannot be opened).
pub(super) fn read(sources: &Sources) -> Result<Option<BTreeMap<String, [u64; 1]>>, SourceError> {
    // A kernel with `psi=0` shows the files and refuses to open them. Such a resource is skipped;
    // an error in each sample would not help anybody.
    let mut stalls = BTreeMap::new();
    for resource in RESOURCES {
        let Ok(source) = SourceText::read(sources.proc.join("pressure").join(resource)) else {
            continue;
        };
        // A line is `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`. The averages of the kernel
        // cover windows of its own, so only the total is used.
        for line in source.lines() {
            let mut words = line.text.split_ascii_whitespace();
            let kind = words.next().filter(|kind| ["some", "full"].contains(kind));
            let kind =
                kind.ok_or_else(|| line.error("the line contains neither `some` nor `full`"))?;
            let total = words.find_map(|word| word.strip_prefix("total="));
            let total = line.number(total, "`total=`")?;
            stalls.insert(format!("{resource}_{kind}"), [total]);
        }
    }
    Ok((!stalls.is_empty()).then_some(stalls))
}
