//! Which files a job names, and how requests are dealt out to them.

use ssdyno_block::each_once;

use super::distribution::Distribution;
use super::load::Load;
use super::reader::{Answer, Reader};
use super::requests::{Order, Service};
use super::shape::Shape;
use super::values;

/// Most files of a job.
const FILES_MAX: usize = 1_024;

impl Reader<'_> {
    /// The files, whether they were named themselves, and how many there are.
    pub(super) fn files(&mut self) -> Answer<(Vec<String>, bool, u32)> {
        let directory = self.text("directory");
        if directory.as_ref().is_some_and(|directory| directory.contains(':')) {
            return self.wrong("several directories are not supported", "use a job for each");
        }
        let directory = directory.map(|directory| format!("{directory}/"));
        let Some(names) = self.text("filename") else {
            let count = values::whole_in(1..=FILES_MAX as u64);
            let count = self.value(&["nrfiles", "nr_files"], "1 to 1024 files", count)?;
            let count = count.unwrap_or(1) as u32;
            // fio makes files named by the job there.
            let made = |directory: String| {
                let name = |file| format!("{directory}{}.0.{file}", self.section.name);
                (0..count).map(name).collect()
            };
            return Ok((directory.map(made).unwrap_or_default(), false, count));
        };
        let placed = |name: String| match &directory {
            Some(directory) if !name.starts_with('/') => format!("{directory}{name}"),
            _ => name,
        };
        // A name that occurs twice is one file. Two entries would give it twice the requests,
        // and both would write to the same addresses.
        let files = each_once(split_names(&names).into_iter().map(placed));
        if files.is_empty() || files.len() > FILES_MAX {
            let what = format!("{} files", files.len());
            return self.wrong(what, format!("name 1 to {FILES_MAX}, with a colon between two"));
        }
        let count = files.len() as u32;
        Ok((files, true, count))
    }

    /// What several files exclude.
    pub(super) fn check_files(
        &mut self,
        count: u32,
        load: &Load,
        notes: &mut Vec<String>,
    ) -> Answer<()> {
        if count == 1 {
            return Ok(());
        }
        if let Some(open) = self.value(&["openfiles"], "a number", values::whole)?
            && (1..u64::from(count)).contains(&open)
        {
            let help = "leave it out: all of its files are open";
            return self
                .wrong(format!("{open} of {count} files open at a time are not supported"), help);
        }
        if load.strides.is_some() {
            let _ = self.find(&["zonemode"]);
            return self.wrong("parts of several files are not supported", "name one file");
        }
        if load.distributions.iter().any(|one| matches!(one, Distribution::Sequence(..))) {
            let _ = self.find(&["random_distribution"]);
            return self.wrong("a sequence over several files is not supported", "name one file");
        }
        if load.shape != Shape::default() && load.shape.flush_every.is_some() {
            notes.push(
                "a flush applies to the file that was written last (fio: the next file)".into(),
            );
        }
        Ok(())
    }

    /// How files are served.
    pub(super) fn service(&mut self) -> Answer<Service> {
        // With one file there is nothing to choose.
        let several = self.files()?.2 > 1;
        let entry = self.find(&["file_service_type"]).filter(|_| several);
        let Some(entry) = entry else { return Ok(Service::default()) };
        let text = entry.value.unwrap_or_default();
        let (order, each) = text.split_once(':').unwrap_or((&text, "1"));
        let order = match order {
            "roundrobin" => Order::InTurn,
            "random" => Order::Random,
            "sequential" => Order::OneByOne,
            other => {
                return self.wrong(
                    format!("serving files by `{other}` is not supported"),
                    "use roundrobin, random or sequential",
                );
            }
        };
        match values::whole(each).filter(|each| *each >= 1) {
            Some(each) => Ok(Service { order, each }),
            None => self.wrong(
                format!("`{each}` is not a number of requests"),
                "use a form such as roundrobin:8 for eight requests to a file before the next",
            ),
        }
    }
}

/// Names with colons between them; a colon of a name has a backslash before it.
fn split_names(text: &str) -> Vec<String> {
    // PCI addresses such as 0000:01:00.0 contain colons. A NUL cannot occur in a path, so it can
    // stand for an escaped colon while the text is split.
    let plain = text.replace("\\:", "\u{0}");
    let names = plain.split(':').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| name.replace('\u{0}', ":")).collect()
}
