//! Which files there are.

use crate::capacity::load::Figure;
use crate::measure::ProfileOp;

/// A configuration file of a scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchedulerFile {
    /// A line for `/sys/fs/cgroup/io.cost.model` of Linux.
    IoCostModel,
    /// A line for `/sys/fs/cgroup/io.cost.qos` of Linux.
    IoCostQos,
    /// An entry of systemd's hardware database with both.
    IoCostHwdb,
    /// `io_properties.yaml` of Seastar.
    IoProperties,
    /// Capacity options of Ceph's mClock scheduler.
    MClock,
}

impl SchedulerFile {
    /// The figures that it needs.
    pub(super) fn needs(self) -> &'static [Figure] {
        match self {
            SchedulerFile::IoCostModel | SchedulerFile::IoCostQos | SchedulerFile::IoCostHwdb => {
                &Figure::ALL
            }
            SchedulerFile::IoProperties => {
                &[Figure::Rbps, Figure::Rrandiops, Figure::Wbps, Figure::Wrandiops]
            }
            SchedulerFile::MClock => &[Figure::Rbps, Figure::Wbps, Figure::Wrandiops],
        }
    }

    /// Whether it has figures of writes: all of them do.
    pub fn needs_writes(self) -> bool {
        self.needs().iter().any(|figure| figure.op() == ProfileOp::Write)
    }
}
