//! Commands on namespaces: Namespace Management, Namespace Attachment, Format NVM.

use std::ops::Range;

use ssdyno_spec::nvme::{AsynchronousEvent, IdentifyNamespace, NvmeStatus, SubmissionEntry};
use zerocopy::{FromZeros, IntoBytes};

use super::admin::AdminOutcome;
use super::identify::CONTROLLER_ID;
use super::namespaces::Namespace;
use super::versions::Field;
use super::{HostData, NvmeSubsystem};
use crate::answer::Answer;
use ssdyno_device::Device;

impl<D: Device> NvmeSubsystem<D> {
    /// Namespace Management (base 2.0c, clause 5.23): create and delete.
    pub(crate) fn manage_namespace(
        &mut self,
        entry: &SubmissionEntry,
        data: &mut dyn HostData,
    ) -> Answer<AdminOutcome> {
        let invalid_field = NvmeStatus::INVALID_FIELD.with_do_not_retry();
        match entry.dword10.get() & 0xf {
            0 if entry.dword11.get() >> 24 != 0 => {
                let named = self.has_field(Field::CommandSets);
                let unknown = NvmeStatus::COMMAND_SET_NOT_SUPPORTED.with_do_not_retry();
                Err(if named { unknown } else { invalid_field })
            }
            0 => {
                let mut wanted = IdentifyNamespace::new_zeroed();
                data.receive(wanted.as_mut_bytes())?;
                let format = self.namespaces.format(usize::from(wanted.format_index()));
                let invalid_format = NvmeStatus::FORMAT_INVALID.with_do_not_retry();
                let shift = format.ok_or(invalid_format)?;
                // Metadata and protection are not offered (S1-46).
                if wanted.format & 0x10 != 0 || wanted.protection != 0 {
                    return Err(invalid_format);
                }
                if wanted.size.get() > wanted.capacity.get() {
                    return Err(NvmeStatus::THIN_PROVISIONING_NOT_SUPPORTED.with_do_not_retry());
                }
                if wanted.size != wanted.capacity || wanted.sharing != 0 {
                    return Err(invalid_field);
                }
                self.namespaces.create(wanted.size.get(), shift).map(AdminOutcome::Done)
            }
            1 => self.delete_namespaces(entry.namespace_id.get()),
            _ => Err(invalid_field),
        }
    }

    /// One namespace, or all of them by the identifier for all namespaces.
    fn delete_namespaces(&mut self, id: u32) -> Answer<AdminOutcome> {
        let all = id == u32::MAX;
        let ids: Vec<u32> = self.namespaces.ids(0, true).filter(|own| all || *own == id).collect();
        // Deleting all namespaces succeeds also if there is none. An identifier of one namespace
        // must name one that exists.
        if ids.is_empty() && !all {
            return Err(self.namespaces.refusal(id));
        }
        let mut stretch = None;
        for id in ids {
            let Some(namespace) = self.namespaces.delete(id) else { continue };
            stretch = Some(joined(stretch, &namespace));
            if namespace.attached {
                self.namespace_changed(id);
            }
        }
        Ok(AdminOutcome::Deallocate(stretch.unwrap_or(0..0)))
    }

    fn namespace_changed(&mut self, id: u32) {
        self.logs.namespace_changed(id);
        if self.features.wants_namespace_notices() {
            self.events.push(AsynchronousEvent::NAMESPACE_CHANGED);
        }
    }

    /// Namespace Attachment (base 2.0c, clause 5.22).
    pub(crate) fn attach_namespace(
        &mut self,
        entry: &SubmissionEntry,
        data: &mut dyn HostData,
    ) -> Answer {
        let mut list = [zerocopy::little_endian::U16::ZERO; 2048];
        data.receive(list.as_mut_bytes())?;
        let count = usize::from(list[0].get());
        // The host gives the length of the list. One that is longer than the structure gives no
        // slice and is refused, like an empty list.
        let listed = list.get(1..=count).filter(|listed| !listed.is_empty());
        if listed.is_none_or(|listed| listed.iter().any(|id| id.get() != CONTROLLER_ID)) {
            return Err(NvmeStatus::CONTROLLER_LIST_INVALID.with_do_not_retry());
        }
        let id = entry.namespace_id.get();
        let refusal = self.namespaces.refusal(id);
        let namespace = self.namespaces.get_mut(id).ok_or(refusal)?;
        match (entry.dword10.get() & 0xf, namespace.attached) {
            (0, true) => return Err(NvmeStatus::NAMESPACE_ALREADY_ATTACHED.with_do_not_retry()),
            (1, false) => return Err(NvmeStatus::NAMESPACE_NOT_ATTACHED.with_do_not_retry()),
            (0, false) => namespace.attached = true,
            (1, true) => namespace.attached = false,
            _ => return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry()),
        }
        self.namespace_changed(id);
        Ok(())
    }

    /// Format NVM (base 2.0c, clause 5.14): new block size, no data.
    pub(crate) fn format(&mut self, entry: &SubmissionEntry) -> Answer<AdminOutcome> {
        let dword10 = entry.dword10.get();
        let format = (dword10 & 0xf | (dword10 >> 12 & 3) << 4) as usize;
        let invalid_format = NvmeStatus::FORMAT_INVALID.with_do_not_retry();
        let shift = self.namespaces.format(format).ok_or(invalid_format)?;
        // Metadata and protection (S1-46), and erasing by keys, are not offered.
        if dword10 >> 4 & 0x1f != 0 {
            return Err(invalid_format);
        }
        if dword10 >> 9 & 7 > 1 {
            return Err(NvmeStatus::INVALID_FIELD.with_do_not_retry());
        }
        let id = entry.namespace_id.get();
        let all = id == u32::MAX;
        let ids: Vec<u32> = self.namespaces.ids(0, false).filter(|own| all || *own == id).collect();
        if ids.is_empty() {
            return Err(self.namespaces.refusal(id));
        }
        let mut stretch = None;
        for id in ids {
            let Some(namespace) = self.namespaces.get_mut(id) else { continue };
            stretch = Some(joined(stretch, namespace));
            namespace.blocks = namespace.bytes() >> shift;
            namespace.shift = shift;
            self.namespace_changed(id);
        }
        // With all namespaces, what lies between them holds no data either.
        Ok(AdminOutcome::Deallocate(stretch.unwrap_or(0..0)))
    }
}

/// The bytes of the device from the first of `stretch` or `namespace` to the last.
fn joined(stretch: Option<Range<u64>>, namespace: &Namespace) -> Range<u64> {
    let (start, end) = (namespace.start_bytes, namespace.start_bytes + namespace.bytes());
    stretch.map_or(start..end, |before| before.start.min(start)..before.end.max(end))
}
