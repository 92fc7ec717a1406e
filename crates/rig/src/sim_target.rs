//! What a run needs of a simulated target.

use ssdyno_block::Time;
use ssdyno_device::Device;
use ssdyno_figures::NamespaceResult;
use ssdyno_host::Account;

use crate::ports::PathFigures;

/// What a run needs of its target beyond a device.
pub(crate) trait SimTarget: Send {
    /// What the loop drives.
    fn as_device(&mut self) -> &mut dyn Device;
    /// The same, to be asked.
    fn device(&self) -> &dyn Device;
    /// What the host did, if there is one.
    fn account(&self) -> Option<&Account> {
        None
    }
    /// What lies between workload and device says of itself; `end` is when everything was over.
    fn path(&self, end: Time, report: &mut PathFigures);
    /// The figures of each namespace, where namespaces were chosen. Ends their recording.
    fn namespaces(&mut self) -> Vec<NamespaceResult> {
        Vec::new()
    }
}
