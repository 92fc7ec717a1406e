//! A run's needs from a simulated target.

use ssdyno_block::Time;
use ssdyno_device::Device;
use ssdyno_figures::NamespaceResult;
use ssdyno_host::Account;

use crate::ports::PathFigures;

/// A run's needs from its target beyond those of a device.
pub(crate) trait SimTarget: Send {
    /// What the loop drives.
    fn as_device(&mut self) -> &mut dyn Device;
    /// The same, to be asked.
    fn device(&self) -> &dyn Device;
    // The default is for a device without a host. Figures of the host are then absent from the
    // result and not zero: zero would state that the requests cost no CPU time.
    /// The work of the host, if there is one.
    fn account(&self) -> Option<&Account> {
        None
    }
    /// The reports of the path between workload and device; `end` is when everything was over.
    fn path(&self, end: Time, report: &mut PathFigures);
    /// The figures of each namespace, where namespaces were chosen, until the window of the run ended at `end`. Ends their
    /// recording.
    fn namespaces(&mut self, _end: Time) -> Vec<NamespaceResult> {
        Vec::new()
    }
}
