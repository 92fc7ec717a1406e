//! The parts of a host that do not change while it runs.

use ssdyno_block::Time;

use crate::config::{HostConfig, HostUse};
use crate::port::HostPort;

/// [`CostConfig`](crate::CostConfig) at the clock of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    pub(crate) system_call: Time,
    pub(crate) request: Time,
    pub(crate) piece: Time,
    pub(crate) scsi: Time,
    pub(crate) command: Time,
    pub(crate) lock: Time,
    pub(crate) lock_handover: Time,
    pub(crate) register_write: Time,
    pub(crate) register_read: Time,
    pub(crate) interrupt: Time,
    pub(crate) completion: Time,
    pub(crate) wakeup: Time,
    pub(crate) context_switch: Time,
    pub(crate) poll: Time,
    pub(crate) idle_exit: Time,
    /// Of the page cache, for a page.
    pub(crate) page: Time,
    /// Of the file system, for a request.
    pub(crate) file_system: Time,
    /// System calls of a request.
    pub(crate) system_calls: u32,
    /// Further context switches of a request.
    pub(crate) extra_switches: f64,
    copy_ps_per_byte: f64,
}

impl Costs {
    fn new(config: &HostConfig, plan: &HostUse) -> Costs {
        let c = &config.costs;
        let at = |cost: crate::Cost| cost.at(config.cpu.clock);
        // Direct I/O moves data to the pages of the process by DMA, without a copy. Only a stack
        // with kernel buffers (S1-56) or a page cache pays for a copy.
        let rate = c.copy.filter(|_| config.stack.copy || config.cache.is_some());
        let table = config.file_system.as_ref();
        Costs {
            system_call: at(c.system_call) * u64::from(config.stack.system_calls),
            request: at(c.request),
            piece: at(c.piece),
            scsi: if plan.scsi { at(c.scsi) } else { Time::ZERO },
            command: at(c.command),
            lock: at(c.lock),
            lock_handover: at(c.lock_handover),
            register_write: at(c.register_write),
            register_read: at(c.register_read),
            interrupt: at(c.interrupt),
            completion: at(c.completion),
            wakeup: at(c.wakeup),
            context_switch: at(c.context_switch),
            poll: at(c.poll),
            idle_exit: config.cpu.idle_exit.0,
            page: config.cache.as_ref().map_or(Time::ZERO, |cache| at(cache.page_cost)),
            file_system: table.map_or(Time::ZERO, |table| at(table.request_cost)),
            system_calls: config.stack.system_calls,
            extra_switches: config.stack.extra_switches,
            copy_ps_per_byte: rate.map_or(0.0, |rate| 1e12 / rate.0),
        }
    }

    pub(crate) fn copy(&self, bytes: u32) -> Time {
        Time::from_ps((f64::from(bytes) * self.copy_ps_per_byte) as u64)
    }
}

/// The use of the host, the cost of its steps, and the path between a process and the driver.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) plan: HostUse,
    pub(crate) costs: Costs,
    /// Data is copied through buffers of the kernel.
    pub(crate) copies: bool,
    /// A write is complete once its commands are with the driver.
    pub(crate) write_behind: bool,
    /// Most bytes of one command.
    pub(crate) piece_bytes: u32,
    pub(crate) time_slice: Time,
    /// Cores share the queues of the driver, under locks.
    pub(crate) shared: bool,
}

impl Setup {
    pub(crate) fn new(config: &HostConfig, plan: HostUse, port: &impl HostPort) -> Setup {
        let asked = config.stack.buffer.map_or(u32::MAX, |bytes| bytes.0 as u32);
        Setup {
            costs: Costs::new(config, &plan),
            // With a page cache its pages are the buffers.
            copies: config.stack.copy && config.cache.is_none(),
            write_behind: config.stack.write_behind && config.cache.is_none(),
            // S1-52: the thesis sends 32 KiB per request although the device takes 128 KiB. The
            // smaller one of both limits decides how often a request is split.
            piece_bytes: asked.min(port.transfer_bytes_max()),
            time_slice: config.cpu.time_slice.0,
            shared: port.shared(),
            plan,
        }
    }
}
