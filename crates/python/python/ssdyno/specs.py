"""The keys of specs, devices and workloads as dataclasses. Made by `cargo xtask schemas`; do not edit.

A key that is left out, or is None, is not part of the spec: its default applies, or what a preset says. Text with a unit
is a str ("4KiB", "25us").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Union


@dataclass(kw_only=True)
class RunSpec:
    """A complete description of a run of a simulated or a real target.

    A key that is left out has its default. Paths are relative to the working directory of the program. The spec does
    not include where results go and how progress is shown."""

    #: Version of the format of this object: 1.
    #: Default: 1.
    version: int | None = None
    #: The target: `sim:NAME`, `sim:FILE.toml` or `FILE.toml` for a simulated device; a block device, a file,
    #: `nbd://HOST[:PORT][/EXPORT]`, `iscsi://HOST[:PORT]/IQN/LUN` or `null:` for a real target. Default: the file that
    #: a job file names, or `sim:nvme-tlc`.
    target: str | None = None
    #: A preset, `FILE.toml`, or a trace. Default: `mixed`; for a device or a file `randread`.
    workload: str | None = None
    #: A job file of fio instead of a workload.
    fio: str | None = None
    #: Random seed. A simulated run with the same seed has the same figures.
    #: Default: 1.
    seed: int | None = None
    #: Stop issuing requests at this time of the device. With `fio`, an upper limit for each job.
    for_: Span | None = field(default=None, metadata={"key": "for"})
    #: Issue this many requests, 1 or more, after the ramp-up of a workload that has one.
    requests: int | None = None
    #: Stop when the 95 % intervals of mean latency and IOPS are within ± this share of the value, such as `1%`. With a
    #: figure, such as `p99=2%`, only the interval of that figure counts.
    until: str | None = None
    #: Keys of the device, the workload (`workload.KEY`) or the network (`network.KEY`), as `KEY=VALUE`. A later entry
    #: overrides an earlier entry.
    set: list[str] | None = None
    #: The data that the run keeps for each request. It decides how exact percentiles are.
    keep: Keep | None = None
    #: Length of one interval of the series; 0 for a single interval. Default: depends on the length of the run.
    interval: Span | None = None
    #: Split the latency of requests to a simulated SSD into its parts (`latency_parts_ns`): waiting, firmware, link,
    #: channel, die, and the work that kept the die busy. The figures stay the same; the run takes longer.
    why: bool | None = None
    #: How a trace is read and replayed.
    trace: TraceSpec | None = None
    #: The host between the workload and a simulated device.
    host: HostSpec | None = None
    #: How the run loads a real target.
    real: RealSpec | None = None
    #: Permissions to write to a real target.
    write: WriteSpec | None = None
    #: The contents of the files and presets that the spec names. If contents are here, the run does not read the file
    #: or the preset, so that a later change to the file has no effect.
    contents: FileContents | None = None


@dataclass(kw_only=True)
class TraceSpec:
    """How a trace is read and replayed."""

    #: The format. Default: detected from the content.
    format: str | None = None
    #: When requests start: `original`, `scaled=FACTOR` (0.5 is twice as fast), or `fast` (as soon as fewer than
    #: `depth` are outstanding). Default: `original`.
    timing: str | None = None
    #: The time in the trace that becomes time 0 of the run. Default: `first`.
    origin: TraceOrigin | None = None
    #: Maximum number of requests outstanding, 1 or more. Default: no limit; 32 with `fast`.
    depth: int | None = None
    #: Replay only the requests of these devices (disks, volumes) of the trace. Default: all.
    device: list[str] | None = None
    #: Size of the range that each device of the trace gets; the ranges follow one another. Default: all devices at
    #: the same addresses.
    slot: Bytes | None = None
    #: The meaning of the objects in libCacheSim traces. Default: `sector`.
    ids: ObjectIds | None = None
    #: The columns of a CSV trace without a header.
    columns: str | None = None
    #: How to handle requests beyond the end of the target. Default: `fail`.
    beyond_end: BeyondEnd | None = None


@dataclass(kw_only=True)
class HostSpec:
    """The host between the workload and a simulated device."""

    #: The driver. Default: `nvme` for a device with a table `nvme`, `ring` for a ring card, `network` with a network,
    #: `direct` for other devices.
    driver: DriverSpec | None = None
    #: The machine: a preset or `FILE.toml`. Default: `server`.
    name: str | None = None
    #: Number of host cores that take part, 1 or more. Default: all cores.
    cores: int | None = None
    #: A network before the device: a preset or `FILE.toml`.
    network: str | None = None
    #: How NVMe commands are distributed over queues. Default: `per-core`.
    queues: Queues | None = None
    #: The layer between a process and the driver. Default: `block`.
    stack: StackKind | None = None
    #: How threads issue requests. Default: the setting in the host file.
    threads: ThreadMode | None = None
    #: How threads wait for completions. Default: `interrupt`.
    completion: CompletionWait | None = None
    #: Ring a doorbell for each command and completion, or once for a batch. Default: for each command, and once for a
    #: batch of completions.
    doorbell: Doorbell | None = None
    #: Priority classes of the threads in turn, 0 (served first) to 3.
    classes: list[int] | None = None
    #: NVMe power state that the driver sets as it starts, 0 to 31. Default: none set.
    power_state: int | None = None
    #: Namespaces of an NVMe device, from 1: one, for all threads, or one for each thread in turn. Default: 1.
    namespaces: list[int] | None = None
    #: Timeout of the NVMe driver for a completion, 1 ms to 1 h. Default: 30 s.
    time_limit: Span | None = None
    #: How often the driver retries a failed NVMe command, at most 1000. Default: 0.
    retries: int | None = None
    #: Settings of the ring driver, such as `block=16,completion=napi:64`.
    ring: RingSpec | None = None


@dataclass(kw_only=True)
class RealSpec:
    """How the run loads a real target."""

    #: The engine that issues requests. Default: `auto`.
    engine: EngineKind | None = None
    #: Poll the device for completions instead of waiting for interrupts.
    iopoll: bool | None = None
    #: Use a kernel thread for submissions.
    sqpoll: bool | None = None
    #: Use the page cache of this machine; the run first drops the target's pages from it (fio: direct=0).
    buffered: bool | None = None
    #: Threads that share the load, 1 or more. Default: 1.
    jobs: int | None = None
    #: Cores to which jobs are bound, in turn, or `none` to let the system choose. Default: `none`. Exception: on a
    #: loop device a single job that sleeps stays on the core where it starts, if its depth is above 1.
    pin: Pin | None = None
    #: How requests are passed to the kernel and reaped. Default: `default`.
    method: Method | None = None
    #: Number of completions for which a closed loop waits at a time, or `all`. Default: depends on the method.
    batch: Batch | None = None
    #: Maximum number of requests per submit call, or `all` (fio: iodepth_batch). Default: depends on the method.
    submit: Batch | None = None
    #: How jobs wait for completions. Default: depends on the method.
    wait: ReapWait | None = None
    #: Time without a completion after which the target is treated as hung. Default: 30 s.
    timeout: Span | None = None
    #: Do not sample the machine during the run.
    no_probes: bool | None = None
    #: Sampling interval of the machine. Default: 100 ms, or longer if that interval costs too much.
    probe_interval: Span | None = None
    #: Search for the fastest method first, and use it. The spec in the result contains the method that the search
    #: found.
    tune: bool | None = None


@dataclass(kw_only=True)
class WriteSpec:
    """Permissions to write to a real target."""

    #: Allow writing. Without it a real target is opened read-only.
    allowed: bool | None = None
    #: Serial numbers of the devices whose contents the run may destroy.
    destroy: list[str] | None = None
    #: Allow overwriting an existing file that ssdyno did not create.
    overwrite: bool | None = None
    #: Create the target, a file, with this size if it does not exist.
    size: Bytes | None = None


@dataclass(kw_only=True)
class FileContents:
    """The contents of the files and presets that a spec names."""

    #: The device file.
    device: AnyDevice | None = None
    #: The workload file.
    workload: WorkloadConfig | None = None
    #: The host file.
    host: HostConfig | None = None
    #: The network file.
    network: NetworkConfig | None = None
    #: Checksums of the traces and job files, whose contents are not included. A repetition refuses files with other
    #: checksums.
    files: list[FileMark] | None = None


@dataclass(kw_only=True)
class Config:
    """A device file."""

    #: One line about the device, and where its numbers come from.
    #: Default: "".
    description: str | None = None
    #: Geometry, times and rules of the flash.
    flash: FlashConfig
    #: Mapping and cleaning.
    ftl: FtlConfig
    #: Write buffer and read cache.
    buffer: BufferConfig | None = None
    #: Firmware and DRAM.
    controller: ControllerConfig | None = None
    #: The link to the host.
    host_link: LinkConfig
    #: The device's queue.
    queue: QueueConfig | None = None
    #: The NVMe controller; if omitted, requests reach the device without a controller.
    nvme: NvmeControllerConfig | None = None
    #: Currents and powers.
    energy: EnergyConfig
    #: Low-power states.
    power: PowerConfig | None = None
    #: Contents of the device before the run.
    precondition: Precondition | None = None
    #: Faults to inject; if omitted, none.
    faults: FaultConfig | None = None


@dataclass(kw_only=True)
class FlashConfig:
    """The `[flash]` table."""

    #: Channels (buses) of the controller; 1 to 1024.
    channels: int
    #: Chips (packages) on each channel.
    chips_per_channel: int
    #: Dies in a chip.
    dies_per_chip: int
    #: Planes in a die; 1 to 16.
    planes_per_die: int
    #: Blocks in a plane.
    blocks_per_plane: int
    #: Pages in a block; up to 16384.
    pages_per_block: int
    #: Data bytes in a page; a multiple of 512 B.
    page_size: Bytes
    #: Bytes in addition to the data that cross the bus with each page (error correction, metadata).
    #: Default: "0B".
    spare_size: Bytes | None = None
    #: Bits in a cell.
    #: Default: "slc".
    cell: CellType | None = None
    #: Array read, tR.
    read_time: PerLevel
    #: Array program, tPROG.
    program_time: PerLevel
    #: Block erase, tBERS.
    erase_time: Span
    #: The bus: bandwidth, time per byte or ONFI mode.
    bus: Bus
    #: Command and address cycles before each operation, on the bus.
    #: Default: "0ps".
    command_time: Span | None = None
    #: Which of the waiting transfers goes next on a channel.
    #: Default: "fcfs".
    channel_order: ChannelOrder | None = None
    #: With a `channel_order` other than `fcfs`: maximum number of consecutive transfers that may overtake an earlier
    #: transfer; then the transfer that has waited longest goes. 0 = no limit.
    #: Default: 64.
    channel_burst: int | None = None
    #: Planes of a die that may join in one operation.
    #: Default: "any".
    multi_plane: MultiPlane | None = None
    #: True: dies of one chip work at the same time. False: the chip does one operation at a time.
    #: Default: true.
    die_interleave: bool | None = None
    #: True: reads of the host go before programs and erases that wait on the same die.
    #: Default: false.
    read_priority: bool | None = None
    #: With `read_priority`: maximum number of reads in a row before a waiting program or erase; 0 = no limit.
    #: Default: 0.
    read_burst: int | None = None
    #: With `read_priority`: a program in progress is suspended for reads.
    #: Default: false.
    program_suspend: bool | None = None
    #: With `read_priority`: an erase in progress is suspended for reads.
    #: Default: false.
    erase_suspend: bool | None = None
    #: Time to suspend, and again to resume.
    #: Default: "0ps".
    suspend_time: Span | None = None
    #: True: the next read of a die goes into the page register while the data of the previous read leaves the cache
    #: register (ONFI read cache, 31h and 3Fh).
    #: Default: false.
    cache_read: bool | None = None
    #: With `cache_read`: time to move a page from the page register to the cache register, tRCBSY.
    #: Default: "3us".
    cache_read_busy: Span | None = None
    #: True: the data of the next program of a die goes into the cache register while the array executes the previous
    #: program (ONFI page cache program, 15h).
    #: Default: false.
    cache_program: bool | None = None
    #: With `cache_program`: time to move a page from the cache register to the page register, tCBSY.
    #: Default: "3us".
    cache_program_busy: Span | None = None
    #: How cleaning moves a page.
    #: Default: "controller".
    copy: CopyMode | None = None
    #: Program and erase cycles that a block endures on average; if omitted, no limit.
    endurance_cycles: int | None = None
    #: Spread of the endurance as a share of its mean: the coefficient of variation (0 to 0.3).
    #: Default: 0.0.
    endurance_spread: float | None = None
    #: Share of blocks that are bad from the factory (0 to 0.1).
    #: Default: 0.0.
    factory_bad: float | None = None


@dataclass(kw_only=True)
class FtlConfig:
    """The `[ftl]` table: keys that several FTLs share, and a table for each FTL with its own keys."""

    #: Name of the FTL; `ssdyno list ftls` shows all.
    name: str
    #: Share by which the physical space exceeds the logical space: physical / logical - 1.
    over_provisioning: float
    #: Which block is cleaned: `greedy`, `fifo`, `random`, `d-choices`, `cost-benefit`,
    #: `windowed`.
    #: Default: "greedy".
    cleaning: Cleaning | None = None
    #: For `d-choices`: number of blocks drawn; for `windowed`: number of the oldest blocks examined.
    cleaning_window: int | None = None
    #: Cleaning continues while fewer blocks of a plane are free; share of a plane's blocks.
    #: Default: 0.05.
    free_blocks_low: float | None = None
    #: While idle, cleaning continues until this many blocks are free; share of a plane's blocks, 0 = no
    #: cleaning in the background.
    #: Default: 0.0.
    free_blocks_background: float | None = None
    #: How planes are chosen for writes.
    #: Default: "static".
    placement: Placement | None = None
    #: For static placement: the order in which channel (C), way (W, the chip on its
    #: channel), die (D) and plane (P) advance with the logical page; `CWDP` moves the channel
    #: fastest.
    #: Default: "CWDP".
    static_order: str | None = None
    #: Which pages have blocks of their own, separate from other pages.
    #: Default: "off".
    hot_cold: HotCold | None = None
    #: Wear levelling.
    #: Default: "off".
    wear_levelling: WearLevelling | None = None
    #: For static wear levelling: largest tolerated difference in erase counts within a plane.
    #: Default: 100.
    wear_threshold: int | None = None
    #: Pages at the end of each block that hold a summary of the block instead of data; each page is programmed
    #: when the block is full (S3-26).
    summary_pages: int | None = None
    #: Keys of the FTL `page`.
    page: PageMapConfig | None = None
    #: Keys of the FTL `dftl`.
    dftl: DftlConfig | None = None
    #: Keys of the FTL `bast`.
    bast: LogBlockConfig | None = None
    #: Keys of the FTL `fast`.
    fast: LogBlockConfig | None = None


@dataclass(kw_only=True)
class PageMapConfig:
    """The `[ftl.page]` table."""

    #: When the pages of a block that is cleaned are moved. Other FTLs clean whole blocks.
    cleaning_pace: CleaningPace | None = None
    #: For `ftl.hot_cold = "classes"`: two to eight classes of logical pages, in the order of their
    #: addresses. Each class keeps its part, by space, of `free_blocks_low` and
    #: `free_blocks_background`.
    classes: list[PageClass] | None = None


@dataclass(kw_only=True)
class PageClass:
    """A class of logical pages: a share `space` of the logical space, directly after the previous class. An example is a
    stream of the host, or a namespace with its own kind of data."""

    #: Share of the logical space; the shares of all classes sum to 1.
    space: float
    #: Expected share of the writes; the shares of all classes sum to 1. The spare blocks are
    #: divided so that write amplification is lowest (form 5 of the closed forms: Desnoyers, SYSTOR
    #: 2012; Stoica and Ailamaki, VLDB 2013). Left out if every class has `spare`.
    writes: float | None = None
    #: Share of the spare blocks: the blocks of a plane that hold no data and that
    #: `free_blocks_low` does not keep. The shares of all classes sum to 1. If all
    #: classes omit this key, the division is the best for `writes`.
    spare: float | None = None


@dataclass(kw_only=True)
class DftlConfig:
    """The `[ftl.dftl]` table."""

    #: RAM for the cached part of the mapping table, 8 B per entry; if omitted, 1/32 of the table.
    mapping_cache: Bytes | None = None


@dataclass(kw_only=True)
class LogBlockConfig:
    """The tables `[ftl.bast]` and `[ftl.fast]`."""

    #: Share of a plane's blocks that are log blocks, at least two; 0 = 5 %.
    log_blocks: float | None = None


@dataclass(kw_only=True)
class BufferConfig:
    """The `[buffer]` table (S3-8)."""

    #: Which page leaves first: `none` (no buffer), `fifo`, `lru`, `clock`, `bplru`.
    #: Default: "none".
    policy: BufferPolicy | None = None
    #: Memory for data; rounded down to whole pages.
    #: Default: "0B".
    size: Bytes | None = None
    #: Write-back starts at this share of dirty pages; 0 = at once.
    #: Default: 0.9.
    write_back_high: float | None = None
    #: Write-back then continues down to this share of dirty pages; if omitted, `write_back_high`.
    write_back_low: float | None = None
    #: True: a capacitor saves dirty data when the power fails, so a flush has nothing to do.
    #: Default: false.
    protected: bool | None = None
    #: True: data that was read or written back stays in the buffer while there is room. False: the
    #: buffer holds only data on its way to flash.
    #: Default: false.
    cache_reads: bool | None = None


@dataclass(kw_only=True)
class ControllerConfig:
    """The `[controller]` table."""

    #: Firmware cores. Each command takes one core for `command_time` plus `page_time` per page.
    #: Default: 1.
    cores: int | None = None
    #: Firmware time of a command.
    #: Default: "0ps".
    command_time: Span | None = None
    #: Firmware time of each page of a command.
    #: Default: "0ps".
    page_time: Span | None = None
    #: Bandwidth of the controller's DRAM, which all data crosses once; if omitted, the DRAM takes no time.
    dram_bandwidth: Bandwidth | None = None
    #: How to handle a write that covers only part of a page.
    #: Default: "read-modify-write".
    partial_page: PartialPage | None = None


@dataclass(kw_only=True)
class QueueConfig:
    """The `[queue]` table."""

    #: Maximum number of requests inside the device; further requests wait outside.
    #: Default: 1024.
    depth: int | None = None
    #: The order in which waiting requests enter.
    #: Default: "fcfs".
    waiting: WaitingOrder | None = None


@dataclass(kw_only=True)
class NvmeControllerConfig:
    """The `[nvme]` table: the NVMe controller between host and device.

    A device file without this table has no controller: requests reach the device without queues and cost the host
    nothing."""

    #: Version of the specification that the controller reports, 1.0 to 2.0. The controller neither announces nor
    #: accepts features of later versions.
    #: Default: "2.0".
    version: str | None = None
    #: PCI vendor.
    #: Default: 65520.
    pci_vendor: int | None = None
    #: PCI device.
    #: Default: 23808.
    pci_device: int | None = None
    #: Model, up to 40 ASCII characters.
    #: Default: "SSDyno simulated NVMe SSD".
    model: str | None = None
    #: Serial number, up to 20 ASCII characters.
    #: Default: "SIM0000000000001".
    serial: str | None = None
    #: Firmware revision, up to 8 ASCII characters.
    #: Default: "0.1.0".
    firmware: str | None = None
    #: I/O queue pairs, 1 to 1024.
    #: Default: 32.
    io_queues: int | None = None
    #: Maximum number of entries of a queue, 2 to 65536.
    #: Default: 1024.
    queue_entries: int | None = None
    #: Maximum data size of a command: a power of two from 8KiB, the smallest MDTS value, to 4MiB.
    #: Default: "1MiB".
    max_transfer: Bytes | None = None
    #: Commands taken from a queue at a time, until the host sets another value: 1 to 64, or "unlimited".
    #: Default: 8.
    arbitration_burst: Burst | None = None
    #: The controller offers weighted round robin with urgent class.
    #: Default: true.
    weighted_round_robin: bool | None = None
    #: Distance between doorbells: a power of two from 4B to 128KiB.
    #: Default: "4B".
    doorbell_stride: Bytes | None = None
    #: Number of MSI-X vectors; if omitted, one for each queue.
    msix_vectors: int | None = None
    #: Number of MSI vectors: 0, or a power of two to 32.
    #: Default: 1.
    msi_vectors: int | None = None
    #: Time from the moment a read of host memory leaves the controller until its last data
    #: arrives, without the transfer time of the data.
    #: Default: "900ns".
    fetch_latency: Span | None = None
    #: Number of submission queue entries per read, 1 to 64.
    #: Default: 16.
    fetch_entries: int | None = None
    #: Maximum number of submission queue reads in progress, 1 to 256.
    #: Default: 8.
    fetches: int | None = None
    #: Time from the end of a command until its completion entry is in host memory, without the
    #: transfer time.
    #: Default: "300ns".
    completion_latency: Span | None = None
    #: Time of an admin command.
    #: Default: "10us".
    admin_time: Span | None = None
    #: From CC.EN = 1 to CSTS.RDY = 1.
    #: Default: "10ms".
    ready_time: Span | None = None
    #: Keep the written data and return it when it is read. Costs memory and time on the host.
    #: Default: false.
    contents: bool | None = None
    #: Maximum number of namespaces, 1 to 1024.
    #: Default: 32.
    namespaces_max: int | None = None
    #: Namespaces that the device has at the start.
    #: Default: [{"block_size":"512B"}].
    namespaces: list[NamespaceConfig] | None = None
    #: Operational power states, the state with the most power first; the low-power states of `[power]` are numbered
    #: after them.
    #: Default: [{"power":"8W","entry_latency":"0ps","exit_latency":"0ps"}].
    operational_states: list[OperationalState] | None = None
    #: The link between the host and a controller in front of a disk, an array, a volume or a delay: entries of
    #: queues and data cross it [default: PCI Express 3.0 with 4 lanes]. An SSD has `[host_link]`.
    link: LinkConfig | None = None


@dataclass(kw_only=True)
class NamespaceConfig:
    """A namespace that the device has at the start."""

    #: Size of the namespace; if omitted, the rest of the capacity.
    size: Bytes | None = None
    #: Logical block size of the namespace: 512B or 4KiB.
    #: Default: "512B".
    block_size: Bytes | None = None


@dataclass(kw_only=True)
class OperationalState:
    """An operational power state (base 2.0c, clause 8.15): commands are processed."""

    #: Maximum average power over a few milliseconds. The first state only reports it; the others also limit the power
    #: to it. 0 W: not reported, no limit.
    power: Watts
    #: Time to enter.
    #: Default: "0ps".
    entry_latency: Span | None = None
    #: Time to leave.
    #: Default: "0ps".
    exit_latency: Span | None = None


@dataclass(kw_only=True)
class EnergyConfig:
    """The `[energy]` table."""

    #: The flash dies.
    flash: FlashPower
    #: The firmware's processor.
    cpu: CpuPower
    #: The controller's DRAM.
    dram: DramPower
    #: Buses: flash channels and the link to the host.
    bus: BusPower


@dataclass(kw_only=True)
class FlashPower:
    """The `[energy.flash]` table: currents of one die (S3-2, S3-16)."""

    #: Supply voltage of the dies (S3-16: 3.3 V).
    voltage: Volts
    #: Current of a die while its array reads (S3-16: 15 mA).
    read_current: Amperes
    #: Current of a die while its array programs (S3-16: 15 mA).
    program_current: Amperes
    #: Current of a die while it erases (S3-16: 15 mA).
    erase_current: Amperes
    #: Current of a die while its data crosses the channel (S3-16 prints 0.05 mA; S3-29: 5 mA).
    transfer_current: Amperes
    #: Current of an idle die (S3-16: 1 mA, of a package with one die).
    idle_current: Amperes
    #: True: a die draws its idle current also during cleaning, on top of the current of the
    #: activity. Physically wrong; the tables of S3 were computed this way (S3-33).
    #: Default: false.
    idle_during_cleaning: bool | None = None


@dataclass(kw_only=True)
class CpuPower:
    """The `[energy.cpu]` table (S3-3, S3-16)."""

    #: When the CPU counts as active: `cores` or `in-service`.
    #: Default: "cores".
    rule: CpuRule | None = None
    #: Power while working (S3-16: 259 mW).
    normal_power: Watts
    #: Power while idle (S3-16: 124 mW).
    idle_power: Watts
    #: Power in slow mode (S3-16: 33 mW); needed with `slow_when_idle_after`.
    slow_power: Watts | None = None
    #: Idle time after which the CPU enters slow mode to save energy, until it is needed (S3-15). If omitted, never,
    #: as in S3. The return from slow mode takes no time.
    slow_when_idle_after: Span | None = None


@dataclass(kw_only=True)
class DramPower:
    """The `[energy.dram]` table (S3-4, S3-16)."""

    #: Power while data goes in or out, the same for reads and writes (S3-4). S3-16 prints 80 mW,
    #: with the labels swapped (S3-30): 878 mW.
    active_power: Watts
    #: Power while the DRAM only retains data (S3-16 prints 878 mW; the tables were computed with
    #: 80 mW, S3-30).
    idle_power: Watts


@dataclass(kw_only=True)
class BusPower:
    """The `[energy.bus]` table: buses have no idle power (S3-5)."""

    #: Supply voltage of the buses (S3-16: 3.3 V).
    voltage: Volts
    #: Current of a channel's controller side while it transfers commands or data. S3 has none: it
    #: charges flash transfers to the package (S3-33).
    #: Default: "0nA".
    channel_current: Amperes | None = None
    #: Current of the host link while it transfers (S3-16 prints 0.05 mA; S3-29: 5 mA).
    host_link_current: Amperes


@dataclass(kw_only=True)
class PowerConfig:
    """The `[power]` table."""

    #: Low-power states, in order of rising `idle_after`; if omitted, the device never sleeps.
    #: Default: [].
    states: list[PowerState] | None = None


@dataclass(kw_only=True)
class PowerState:
    """A low-power state (NVM Express base specification 2.0, clause 8.15)."""

    #: Power of the whole device.
    power: Watts
    #: Idle time before the device enters the state (the host's autonomous transition table).
    idle_after: Span
    #: Time to enter; a request that arrives during this time waits for it.
    entry_latency: Span
    #: Time to leave; the request that wakes the device waits for it.
    exit_latency: Span


@dataclass(kw_only=True)
class Precondition:
    """The `[precondition]` table."""

    #: Contents of the device before the run.
    #: Default: "random".
    fill: Fill | None = None
    #: Share of the logical space that holds data; 0 to 1.
    #: Default: 1.0.
    share: float | None = None


@dataclass(kw_only=True)
class FaultConfig:
    """The `[faults]` table of a device. Without the table or without keys, no faults are injected.

    A command has at most one kind of fault, so that the shares sum to at most 1. The shares count commands to the
    device: reads, writes, trims and flushes; for the ring card one command per page."""

    #: Share of commands that end with an error, 0 to 1: reads with an unrecovered read error, others with a write
    #: fault. The error comes after the normal time of the command.
    error: float | None = None
    #: Share of commands that complete late, 0 to 1.
    delay: float | None = None
    #: The delay of late commands; up to an hour.
    delay_by: Span | None = None
    #: Share of commands that never complete, 0 to 1: the timeout of the driver has to end them.
    drop: float | None = None
    #: Share of interrupts that never arrive, 0 to 1.
    lost_interrupts: float | None = None
    #: Time of the run at which the device hangs until its driver resets it. It hangs once; if it has no commands at
    #: that time, it hangs with the next command.
    hang_at: Span | None = None
    #: Mean slowdown: the extra time of every operation in the device, divided by its normal time; 0 to 100. A new
    #: slowdown is drawn for each `slow_for` from an exponential distribution, so that runs differ as on a real machine
    #: (S2-25). The driver `ring` refuses it.
    slow_by: float | None = None
    #: Time for which each drawn slowdown applies; 1 ms to 24 hours.
    slow_for: Span | None = None
    #: Time of the run at which the device is removed (surprise removal). If it has no commands at that time, the next
    #: command finds it removed.
    remove_at: Span | None = None


@dataclass(kw_only=True)
class RingConfig:
    """The file of a ring card."""

    #: One line about the card, and where its numbers come from.
    #: Default: "".
    description: str | None = None
    #: Microprocessor and blocks.
    card: CardConfig
    #: DMA engines.
    dma: DmaConfig
    #: PCI Express.
    link: TlpConfig
    #: The storage media.
    media: MediaConfig
    #: Geometry, times and rules of the flash; with flash media only.
    flash: FlashConfig | None = None
    #: Mapping and cleaning; with flash media only.
    ftl: FtlConfig | None = None
    #: Write buffer and read cache before the flash.
    buffer: BufferConfig | None = None
    #: Contents of the flash before the run.
    precondition: Precondition | None = None
    #: Currents and powers.
    energy: EnergyConfig
    #: Faults to inject; if omitted, none.
    faults: FaultConfig | None = None


@dataclass(kw_only=True)
class CardConfig:
    """The `[card]` table: the microprocessor and its times."""

    #: Maximum number of descriptors in a block: 1 to 1024.
    max_block: int
    #: Maximum number of descriptors of the next block that the card prefetches (S0-26); 0: no prefetch.
    #: Default: 0.
    prefetch: int | None = None
    #: Number of microprocessors; each works on one command at a time (S0-15: one by one or in parallel).
    #: Default: 1.
    processors: int | None = None
    #: Microprocessor time of a command, read or write (S0-22).
    command_time: Span
    #: Microprocessor time from the doorbell until the fetch of the block is set up.
    doorbell_time: Span
    #: Microprocessor time to set up a return of descriptors and its interrupt.
    return_time: Span


@dataclass(kw_only=True)
class DmaConfig:
    """The `[dma]` table."""

    #: Engines for data: 1 to 64; each moves one page at a time.
    engines: int
    #: The engine that moves descriptors.
    #: Default: "shared".
    descriptors: DescriptorEngine | None = None
    #: Time from the start of a transfer to its first packet plus the time to end the transfer.
    setup_time: Span


@dataclass(kw_only=True)
class TlpConfig:
    """The `[link]` table of a ring card."""

    #: 1 to 6.
    generation: int
    #: 1, 2, 4, 8 or 16.
    lanes: int
    #: Maximum amount of data in a packet (clause 7.5.3.4): 128 B to 4 KiB, a power of two.
    max_payload: Bytes
    #: Maximum amount of data per read request (clause 7.5.3.4): 128 B to 4 KiB, a power of two.
    max_read_request: Bytes
    #: Boundary at which the root complex splits completions (clause 2.3.1.1): a power of two, 64 B
    #: up to `max_payload`. The standard allows longer completions; many root complexes do not send
    #: them.
    read_completion_boundary: Bytes
    #: Framing, sequence number, header and LCRC of a request with a 64-bit address: 24 B.
    request_overhead: Bytes
    #: Framing, sequence number, header and LCRC of a completion, whose header has 3 DW: 20 B.
    completion_overhead: Bytes
    #: One-way latency through link and root complex.
    latency: Span
    #: Time from the arrival of a read request in the root complex to its first completion.
    host_read_time: Span
    #: Maximum number of read requests in progress.
    read_tags: int


@dataclass(kw_only=True)
class DelayConfig:
    """The file of a device with a given delay: a storage system of which only the latency is known (S4-35, after the Linux
    module scsi_debug)."""

    #: One line about the device, and where its numbers come from.
    #: Default: "".
    description: str | None = None
    #: Size and times.
    delay: DelayTable
    #: Currents and powers; if omitted, the result contains no energy.
    energy: EnergyConfig | None = None
    #: An NVMe controller in front of the device, for `--driver nvme`; if omitted, every key has its default.
    nvme: NvmeControllerConfig | None = None
    #: Faults to inject; if omitted, none.
    faults: FaultConfig | None = None


@dataclass(kw_only=True)
class DelayTable:
    """The `[delay]` table."""

    #: Size of the device, a multiple of 512 B.
    capacity: Bytes
    #: Time that a server needs for a read (S4-35).
    read: Span
    #: Time that a server needs for a write.
    write: Span
    #: Maximum number of requests in progress, 1 to 65536; further requests wait in order of arrival. With one server,
    #: a delay of 10 us means at most 100 000 requests per second (S4-35).
    #: Default: 1.
    servers: int | None = None
    #: Fixed, or drawn with the given mean.
    #: Default: "fixed".
    spread: Spread | None = None
    #: Rate of the single path that the data of all requests crosses after their delay; if omitted,
    #: the transfer takes no time.
    bandwidth: Bandwidth | None = None
    #: True: a request that begins at the end of the last request of the same kind has no delay, only its transfer, as
    #: on a disk with read-ahead and a streaming write cache.
    #: Default: false.
    streams: bool | None = None
    #: Maximum number of requests inside the device and its queue; the device refuses further
    #: requests as if its queue were full.
    #: Default: 65536.
    depth: int | None = None


@dataclass(kw_only=True)
class ArrayConfig:
    """The file of a striped array, RAID-0 (Patterson, Gibson and Katz, SIGMOD 1988: no redundancy at all). Stripes go to
    the members in turn, and each member provides the capacity of the smallest member."""

    #: One line about the array.
    #: Default: "".
    description: str | None = None
    #: Members and stripes.
    array: ArrayTable
    #: An NVMe controller in front of the array, for `--driver nvme`; if omitted, every key has its default.
    nvme: NvmeControllerConfig | None = None
    #: Faults injected into the array as a whole; members have tables of their own.
    faults: FaultConfig | None = None


@dataclass(kw_only=True)
class ArrayTable:
    """The `[array]` table."""

    #: Number of contiguous bytes in a member before the next member follows (`chunk` of Linux's md); a multiple of the
    #: members' sectors.
    #: Default: "64KiB".
    stripe: Bytes | None = None
    #: The members: for each, the name of a device, or a table with the contents of its file, such as `{ delay = {
    #: capacity = "1GiB", read = "100us", write = "30us" } }`. A member may be an array.
    members: list[MemberSpec]
    #: The RAID controller before the members; if omitted, the array itself takes no time.
    controller: ControllerTable | None = None


@dataclass(kw_only=True)
class ControllerTable:
    """The `[array.controller]` table: a RAID controller with a queue, processors, a link to the host and a cache."""

    #: Maximum number of commands in the controller, 1 to 65536; the controller refuses further
    #: commands as if its queue were full.
    #: Default: 256.
    depth: int | None = None
    #: Maximum number of commands that the controller issues to a member at a time, 1 to 65536; if
    #: omitted, the limit of the member.
    member_depth: int | None = None
    #: Time for which each command of the host occupies a core, up to 1 s.
    #: Default: "0ps".
    latency: Span | None = None
    #: Number of commands that the controller works on at a time, 1 to 1024. With one core, the controller is limited
    #: to 1 / `latency` commands a second.
    #: Default: 1.
    cores: int | None = None
    #: The link to the host: the data of reads and writes cross it.
    link: LinkConfig | None = None
    #: Size of the cache memory, up to 1 TiB; 0: no cache. Read-ahead takes up to `streams` x `read_ahead_size` of the
    #: memory; dirty data may fill the rest.
    #: Default: "0B".
    cache: Bytes | None = None
    #: True: a write completes when its data are in the cache, which is battery-backed. The controller writes them
    #: to the members afterwards (destaging). False: a write completes when the data are on the members.
    #: Default: false.
    write_back: bool | None = None
    #: Which dirty data are destaged first.
    #: Default: "address".
    destage: DestageOrder | None = None
    #: Maximum number of destage writes in progress, 1 to 1024. Each writes contiguous dirty data inside a full stripe:
    #: `stripe` x the number of members.
    #: Default: 8.
    destage_depth: int | None = None
    #: How the controller handles a flush; if omitted, `complete` with `write_back` and `pass-on`
    #: without it.
    flush: FlushPolicy | None = None
    #: When the controller reads ahead.
    #: Default: "none".
    read_ahead: ReadAheadPolicy | None = None
    #: Maximum distance from the end of the last read of a stream to the end of its read-ahead, up to 1 GiB and a
    #: multiple of the array's sectors; if omitted, two full stripes. A read-ahead command reads one stripe of one
    #: member.
    read_ahead_size: Bytes | None = None
    #: Maximum number of sequential streams that the controller recognises, 1 to 256. A read that continues no stream
    #: replaces the least recently used stream.
    #: Default: 8.
    streams: int | None = None
    #: Power of the idle controller.
    #: Default: "0nW".
    idle_power: Watts | None = None
    #: Power of the controller while it holds a command, destages data or reads ahead; if omitted,
    #: `idle_power`.
    active_power: Watts | None = None


@dataclass(kw_only=True)
class DiskConfig:
    """The file of a hard disk: one drive with its geometry, times, cache and powers."""

    #: One line about the drive, and where its numbers come from.
    #: Default: "".
    description: str | None = None
    #: The drive.
    disk: DiskTable
    #: An NVMe controller in front of the drive, for `--driver nvme`; if omitted, every key has its default.
    nvme: NvmeControllerConfig | None = None
    #: Injected faults; if omitted, none.
    faults: FaultConfig | None = None


@dataclass(kw_only=True)
class DiskTable:
    """The `[disk]` table."""

    #: Size of a sector: 512 B or 4 KiB.
    #: Default: "512B".
    sector: Bytes | None = None
    #: Logical blocks, at most the number in the zones [default: all].
    blocks: int | None = None
    #: Revolutions per minute, 1000 to 50000.
    rpm: float
    #: Surfaces with data, each with a head, 1 to 64.
    surfaces: int
    #: The order of tracks.
    #: Default: "cylinder".
    order: TrackOrder | None = None
    #: Cylinders of a band, for `order = "surface-serpentine"`.
    #: Default: 64.
    band: int | None = None
    #: The zones, from the outermost inwards.
    zones: list[ZoneTable] | None = None
    #: A rule that creates the zones, instead of `zones`.
    zones_by_rule: ZonesByRule | None = None
    #: Seek times.
    seek: SeekTable
    #: Time to change the head within a cylinder.
    head_switch: Span
    #: Extra settling time of the head before a write.
    #: Default: "0ps".
    write_settle: Span | None = None
    #: True: a transfer begins with the first of its sectors that reaches the head. False: it begins with its first
    #: sector.
    #: Default: false.
    zero_latency: bool | None = None
    #: Rate of the bus.
    bus: Bandwidth
    #: Times of the electronics.
    overhead: OverheadTable | None = None
    #: Maximum number of commands in the drive: 32 with NCQ (Serial ATA 3.3, 13.6), 1 without queueing.
    #: Default: 32.
    depth: int | None = None
    #: Order of the waiting commands.
    #: Default: "sptf".
    scheduler: Scheduler | None = None
    #: The cache; if omitted, the drive has no cache.
    cache: CacheTable | None = None
    #: Power of each part; a part that is left out has no power.
    power: DiskPower | None = None


@dataclass(kw_only=True)
class ZoneTable:
    """One zone: cylinders whose tracks hold the same number of sectors."""

    #: Number of the first cylinder, counted from the outermost [default: the cylinder after the last zone].
    first_cylinder: int | None = None
    #: Cylinders in the zone.
    cylinders: int
    #: Sectors of one track.
    sectors_per_track: int
    #: Offset in sectors between the first sectors of two successive tracks of a cylinder [default: follows from the
    #: head switch time].
    track_skew: float | None = None
    #: The same offset between the last track of a cylinder and the first track of the next [default: follows from the
    #: time of a seek of one cylinder].
    cylinder_skew: float | None = None
    #: Sectors at the front of the zone without user data.
    #: Default: 0.
    unused: int | None = None
    #: Spare sectors at the end of each `spare_cylinders`.
    #: Default: 0.
    spares: int | None = None
    #: Cylinders that share spare sectors [default: the whole zone].
    spare_cylinders: int | None = None
    #: Defective sectors, counted from the first sector of the zone in the order of logical blocks, ascending: later
    #: blocks slip by one sector each.
    slips: list[int] | None = None


@dataclass(kw_only=True)
class ZonesByRule:
    """A rule that creates the zones, for a drive of which only the outermost and innermost tracks are known. The number
    of sectors per track falls in equal steps from zone to zone."""

    #: Number of zones, 1 to 1000.
    count: int
    #: Cylinders of the whole drive.
    cylinders: int
    #: Sectors per track in the outermost zone.
    outer: int
    #: Sectors per track in the innermost zone.
    inner: int


@dataclass(kw_only=True)
class SeekTable:
    """Seek times of the arm."""

    #: Measured points, `[cylinders, time]` with ascending distances; straight lines between them.
    points: list[list[Any]] | None = None
    #: Without points: time of a seek of one cylinder. With `average` and `full`, a curve a + b sqrt(d - 1) + c (d - 1)
    #: goes through all three (Lee and Katz, SIGMETRICS 1993).
    single: Span | None = None
    #: Mean time between two random cylinders, as in data sheets (a third of all cylinders).
    average: Span | None = None
    #: Time from the first cylinder to the last.
    full: Span | None = None


@dataclass(kw_only=True)
class OverheadTable:
    """Time of a command in the electronics before any other step, by the state of the cache. A write is a hit if it
    overlaps or continues data in the cache."""

    #: A read that the cache can serve.
    #: Default: "0ps".
    read_hit: Span | None = None
    #: A read that the cache can serve and that does not continue the read before it [default: `read_hit`].
    read_hit_apart: Span | None = None
    #: A read from the medium.
    #: Default: "0ps".
    read_miss: Span | None = None
    #: A write that overlaps or continues a segment, or continues the write before it.
    #: Default: "0ps".
    write_hit: Span | None = None
    #: All other writes.
    #: Default: "0ps".
    write_miss: Span | None = None
    #: Extra time of a read that follows a write.
    #: Default: "0ps".
    read_after_write: Span | None = None
    #: Extra time of a write that follows a read.
    #: Default: "0ps".
    write_after_read: Span | None = None


@dataclass(kw_only=True)
class CacheTable:
    """The cache. The segments of reads and the dirty data share it."""

    #: Segments, each for one stream of sequential reads, 1 to 1024.
    segments: int
    #: Size of a segment, a multiple of the sector.
    segment: Bytes
    #: Amount of data that the drive reads ahead beyond the request; at most a segment. `"0B"`: no read-ahead.
    #: Read-ahead ends when a command needs the arm.
    read_ahead: Bytes
    #: Maximum amount of dirty data in the cache. `"0B"`: write-through, so that a write completes when it is on the
    #: medium.
    write_back: Bytes
    #: Maximum number of separate extents in `write_back`; a write that continues an extent joins it.
    write_extents: int
    #: True: written data takes a segment, too, and can be read from there.
    #: Default: false.
    keep_written: bool | None = None


@dataclass(kw_only=True)
class DiskPower:
    """Powers of the drive. An idle drive keeps its spindle at full speed."""

    #: The spindle at full speed.
    #: Default: "0nW".
    spindle: Watts | None = None
    #: The spindle while it accelerates.
    #: Default: "0nW".
    spin_up: Watts | None = None
    #: The electronics, at all times.
    #: Default: "0nW".
    electronics: Watts | None = None
    #: The electronics while they work on a command.
    #: Default: "0nW".
    command: Watts | None = None
    #: The arm while it seeks, in addition to the other parts.
    #: Default: "0nW".
    seek: Watts | None = None
    #: Head and channel while they read.
    #: Default: "0nW".
    read: Watts | None = None
    #: Head and channel while they write.
    #: Default: "0nW".
    write: Watts | None = None
    #: Idle time after which the spindle stops; if omitted, it never stops.
    standby_after: Span | None = None
    #: The spindle at rest, with its driver.
    #: Default: "0nW".
    standby: Watts | None = None
    #: Time from rest to ready.
    #: Default: "0ps".
    spin_up_time: Span | None = None


@dataclass(kw_only=True)
class VolumeConfig:
    """The file of a rented volume: a device behind rate limits, with credits for bursts, such as cloud block
    storage."""

    #: One line about the volume, and where its numbers come from.
    #: Default: "".
    description: str | None = None
    #: The device and its limits.
    volume: VolumeTable
    #: An NVMe controller in front of the volume, for `--driver nvme`; if omitted, every key has its default.
    nvme: NvmeControllerConfig | None = None
    #: Faults injected into the volume; the device has a table of its own.
    faults: FaultConfig | None = None


@dataclass(kw_only=True)
class VolumeTable:
    """The `[volume]` table."""

    #: The device behind the limits: its name, or a table with the contents of its file.
    device: MemberSpec
    #: Limit of requests per second; if omitted, no limit.
    iops: IopsLimit | None = None
    #: Limit of bytes per second, for reads and writes together; if omitted, no limit.
    bandwidth: BandwidthLimit | None = None
    #: Bytes that count as one request, 4 KiB or more: a larger request counts as several. If
    #: omitted, each request counts as one.
    unit: Bytes | None = None
    #: True: successive requests of the same kind count as one, up to `unit`, if each begins at the end of the last.
    #: Default: false.
    merge: bool | None = None
    #: Fill level of the buckets at the beginning, as a share from 0 to 1.
    #: Default: 1.0.
    initial: float | None = None
    #: Maximum number of requests inside, including requests that wait for tokens, 1 to 65536; the
    #: volume refuses further requests as if its queue were full.
    #: Default: 1024.
    depth: int | None = None
    #: Extra time of each request in addition to the time of the device, such as a network. Up to an hour.
    #: Default: "0ps".
    latency: Span | None = None


@dataclass(kw_only=True)
class IopsLimit:
    """A limit of requests per second."""

    #: Permanent rate in requests per second, of `unit` each; 1 to 1e9.
    baseline: float
    #: Requests per second while there are credits, at least the baseline; if omitted, no bursts.
    burst: float | None = None
    #: Maximum number of credits in the bucket, 0 to 1e15: a request beyond the baseline takes one credit.
    #: Default: 0.0.
    bucket: float | None = None
    #: Credits per second that the bucket gains while the volume is idle, 0 to 1e9; below the baseline, it gains a
    #: proportional part. If omitted, the baseline.
    refill: float | None = None


@dataclass(kw_only=True)
class BandwidthLimit:
    """A limit of bytes per second."""

    #: Permanent rate; 1KB/s to 1000GB/s.
    baseline: Bandwidth
    #: Rate while there are credits, at least the baseline; if omitted, no bursts.
    burst: Bandwidth | None = None
    #: Maximum number of bytes in the bucket, up to 1 PiB: bytes beyond the baseline are taken from it.
    #: Default: "0B".
    bucket: Bytes | None = None
    #: Rate at which the bucket fills while the volume is idle, up to 1000GB/s; below the baseline, it fills at a
    #: proportional rate. If omitted, the baseline.
    refill: Bandwidth | None = None


@dataclass(kw_only=True)
class WorkloadConfig:
    """A generated workload."""

    #: How requests are generated: `mix` (all keys except `disksim`) or `disksim-synthetic` (the table `disksim` and
    #: the limits).
    #: Default: "mix".
    kind: WorkloadKind | None = None
    #: Requests outstanding per thread, 1 or more (S4-12). Without `arrivals` the loop is closed and always has this
    #: many requests outstanding (default 1). With `arrivals` it is an upper bound: a request that arrives at a full
    #: queue waits, and its latency counts from the arrival (default: unlimited).
    depth: int | None = None
    #: Independent streams, 1 to 65536 (default 1). They multiply `depth` and take turns. Each stream keeps its own
    #: position when it runs sequentially; with the pattern `sequential` each stream has its own equal part of the
    #: range.
    threads: int | None = None
    #: Searches for the greatest depth, up to `depth` times `threads`, at which no request takes longer than this (fio:
    #: `latency_target`). A last run of one `latency_window` at that depth is recorded. Closed loops only.
    latency_target: Span | None = None
    #: Duration of the test of each depth. It must be at least `latency_target` and long enough for many requests.
    #: Required with `latency_target`.
    latency_window: Span | None = None
    #: Share of the requests of a window that must take at most `latency_target`, 0 to 100 (default 100).
    latency_percentile: float | None = None
    #: Adapt the depth to the latencies until the end of the run, and record everything (default false: the run ends
    #: when the search finds the depth).
    latency_run: bool | None = None
    #: Makes the loop open: requests arrive independently of completions.
    arrivals: Arrivals | None = None
    #: Weight of reads (S4-13). Default: 100 minus the other two weights.
    read_percent: float | None = None
    #: Weight of writes. Default: 100 minus the other two weights.
    write_percent: float | None = None
    #: Weight of trims (default 0).
    trim_percent: float | None = None
    #: Size of every request, a multiple of the target's sector (default 4KiB).
    block_size: Bytes | None = None
    #: Up to 64 sizes with weights (S4-8) instead of `block_size`.
    block_sizes: list[BlockSize] | None = None
    #: Every offset is a multiple of this (S4-14); default: the smallest block size.
    alignment: Bytes | None = None
    #: Share of requests that begin at the end of the thread's last request, 0 to 100 (S4-13). The others follow
    #: `address.pattern`. Default 0, and always 100 with the pattern `sequential`.
    sequential_percent: float | None = None
    #: Addresses of requests.
    address: AddressPattern | None = None
    #: Size and addresses of writes, if they differ from the other requests.
    writes: WritesApart | None = None
    #: The data of writes.
    buffer: WriteData | None = None
    #: Number of requests to issue after `ramp_up` (S4-9). Default: 1000000 without `duration` and without a search for
    #: a depth, which ends by itself.
    requests: int | None = None
    #: End of the load: no request is issued (closed loop) or arrives (open loop) at this time or later.
    duration: Span | None = None
    #: Number of requests before recording starts (S4-10). They are added to `requests` and are part of `duration`.
    #: Default 0.
    #: Default: 0.
    ramp_up: int | None = None
    #: The parameters of `kind = "disksim-synthetic"`.
    disksim: DiskSimSynthetic | None = None


@dataclass(kw_only=True)
class Arrivals:
    """When requests of an open loop arrive."""

    #: The process; Poisson by default.
    #: Default: "poisson".
    kind: ArrivalKind | None = None
    #: Mean arrivals per second; or `mean_gap`. Not for bursts.
    rate: float | None = None
    #: Mean time between arrivals; or `rate`. Not for bursts.
    mean_gap: Span | None = None
    #: Bursts only: requests per burst, all at once (S4-11).
    length: int | None = None
    #: Bursts only: from the start of a burst to the start of the next; `0s` is continuous: a
    #: closed loop at `depth` (S4-11).
    interval: Span | None = None


@dataclass(kw_only=True)
class BlockSize:
    """One of several block sizes."""

    #: A multiple of the target's sector.
    size: Bytes
    #: Share of the requests, in any unit: weights are divided by their sum.
    weight: float


@dataclass(kw_only=True)
class AddressPattern:
    """Addresses of requests."""

    #: How offsets are chosen within the range.
    #: Default: "random".
    pattern: Pattern | None = None
    #: Zipf only: exponent of popularity, greater than 0 and at most 10; rank k is drawn with
    #: weight k^-theta (default 0.99, as YCSB).
    #: Default: 0.99.
    theta: float | None = None
    #: Hot/cold only: share of the range that is hot, above 0, below 100 (default 20).
    #: Default: 20.0.
    hot_space_percent: float | None = None
    #: Hot/cold only: share of the requests that go to the hot part, 0 to 100 (default 80).
    #: Default: 80.0.
    hot_access_percent: float | None = None
    #: Zipf and hot/cold: spread hot blocks over the range by a seeded permutation, so that they
    #: are not neighbours (default true).
    #: Default: true.
    scatter: bool | None = None
    #: First byte of the range, a multiple of the alignment (default 0).
    #: Default: "0B".
    start: Bytes | None = None
    #: Length of the range (default: up to the end of the target).
    length: Bytes | None = None
    #: Length of the range as a percentage of the target's size, greater than 0 and at most 100;
    #: instead of `length`.
    length_percent: float | None = None


@dataclass(kw_only=True)
class WritesApart:
    """Size and addresses of writes, if they differ from the other requests. The weights of the operations decide the
    number of writes."""

    #: Size of every write, a multiple of the target's sector. Offsets of writes are multiples of this size.
    block_size: Bytes
    #: Addresses of writes (default: random over the full target). `sequential`: each write begins at the end of the
    #: last write, regardless of requests in between.
    address: AddressPattern | None = None


@dataclass(kw_only=True)
class WriteData:
    """The data of writes to a real target, for targets that compress or deduplicate. Simulated targets store no data."""

    #: Fill the buffer with new data for each write (fio: `refill_buffers`). Otherwise each buffer keeps the data that
    #: it was filled with at the start (default true).
    #: Default: true.
    refill: bool | None = None
    #: Share of each chunk that is zeroes, 0% to 100%. The rest comes first and is incompressible (fio:
    #: `buffer_compress_percentage`; default 0%).
    #: Default: "0%".
    compress: Percent | None = None
    #: Length of a chunk; 0B: the whole request (fio: `buffer_compress_chunk`; default 512B).
    #: Default: "512B".
    compress_chunk: Bytes | None = None
    #: Share of the writes that repeat the last new data of the job, 0% to 100% (fio: `dedupe_percentage`; default 0%).
    #: Default: "0%".
    dedupe: Percent | None = None


@dataclass(kw_only=True)
class DiskSimSynthetic:
    """DiskSim's synthetic generator with one device: its parameters and, with `drand48`, exactly its random numbers
    (`disksim_synthio.c` of DiskSim 4.0; S3-23 … S3-25).

    Sizes are exponential, cut to whole sectors and rounded up to `block`; empty sizes are drawn again. A sequential
    request follows its predecessor and keeps its size and direction. If twice the size does not fit before the end,
    address, size and direction are drawn again."""

    #: Maximum gap: gaps between arrivals are uniform between 0 and this value (default 1ms).
    #: Default: "1ms".
    gap_max: Span | None = None
    #: Mean of the exponential sizes, before rounding (default 4KiB: 8 sectors).
    #: Default: "4KiB".
    mean_size: Bytes | None = None
    #: Sizes and offsets are multiples of this value (default 4KiB).
    #: Default: "4KiB".
    block: Bytes | None = None
    #: Addresses stay below this value (default 3593678848B: 7018904 sectors).
    #: Default: "3509452KiB".
    space: Bytes | None = None
    #: Probability of a sequential request, 0 to 1 (default 0).
    #: Default: 0.0.
    sequential_probability: float | None = None
    #: Probability of a read, 0 to 1 (default 1).
    #: Default: 1.0.
    read_probability: float | None = None
    #: Source of random numbers.
    #: Default: "drand48".
    numbers: Numbers | None = None
    #: `drand48` only: seed for the first request (default 42, the shipped parameter files).
    #: Default: 42.
    first_seed: int | None = None
    #: `drand48` only: seed for all others (default 1000003, which DiskSim sets at its start).
    #: Default: 1000003.
    main_seed: int | None = None


@dataclass(kw_only=True)
class HostConfig:
    """A host file."""

    #: One line about the machine, and where its numbers come from.
    #: Default: "".
    description: str | None = None
    #: The processor.
    cpu: CpuConfig
    #: Cost of each operation for the core that executes it (S0-34).
    costs: CostConfig
    #: How locks pass from core to core.
    lock: LockConfig | None = None
    #: The layer between a process and the driver.
    stack: StackConfig | None = None
    #: The page cache; if omitted, direct I/O.
    cache: CacheConfig | None = None
    #: The file system over the page cache; if omitted, the page cache caches the block device.
    file_system: FileSystemConfig | None = None
    #: How threads issue requests if the command line does not set it.
    #: Default: "sync".
    threads: ThreadMode | None = None


@dataclass(kw_only=True)
class CpuConfig:
    """The `[cpu]` table."""

    #: Cores, 1 to 1024.
    cores: int
    #: Clock of the cores, for the conversion of costs in cycles.
    clock: Frequency
    #: Time from idle to the first instruction (leaving a C-state): a delay, not work.
    #: Default: "0ps".
    idle_exit: Span | None = None
    #: Maximum time of uninterrupted work before a thread yields the core.
    #: Default: "4ms".
    time_slice: Span | None = None
    #: Power of one core while it works, for the estimate of energy (X-6).
    active_power: Watts
    #: Power of one core while it idles.
    idle_power: Watts


@dataclass(kw_only=True)
class CostConfig:
    """The `[costs]` table. All keys except `interrupt_delivery` are CPU time of a core."""

    #: Kernel entry and exit, once per request; with asynchronous threads and batches once for all requests issued
    #: together.
    #: Default: "0ps".
    system_call: Cost | None = None
    #: The block layer, once per request.
    #: Default: "0ps".
    request: Cost | None = None
    #: The block layer, once per piece (bio) of a request that goes to the driver.
    #: Default: "0ps".
    piece: Cost | None = None
    #: Translation to SCSI and back, once per command; only with the SCSI stack (S1-51).
    #: Default: "0ps".
    scsi: Cost | None = None
    #: The driver: building and issuing one command.
    #: Default: "0ps".
    command: Cost | None = None
    #: Acquiring and releasing a free lock.
    #: Default: "0ps".
    lock: Cost | None = None
    #: Time from one core's release of a lock to the start of the next core: cache lines move.
    #: Default: "0ps".
    lock_handover: Cost | None = None
    #: A posted register write.
    #: Default: "0ps".
    register_write: Cost | None = None
    #: A register read: the core stalls (S1-4).
    #: Default: "0ps".
    register_read: Cost | None = None
    #: Time from a register write to its arrival at the device: a delay, not work. It occupies the port.
    #: Default: "0ps".
    register_delivery: Span | None = None
    #: Time from the message of the device to the handler's core: a delay, not work. It occupies the port.
    #: Default: "0ps".
    interrupt_delivery: Span | None = None
    #: Interrupt entry, dispatch to the handler, and exit.
    #: Default: "0ps".
    interrupt: Cost | None = None
    #: Handling one completed command.
    #: Default: "0ps".
    completion: Cost | None = None
    #: Waking a thread, on the core that wakes it.
    #: Default: "0ps".
    wakeup: Cost | None = None
    #: Switching to another thread.
    #: Default: "0ps".
    context_switch: Cost | None = None
    #: One poll for completions.
    #: Default: "0ps".
    poll: Cost | None = None
    #: Rate of the copy between process and kernel buffers; needed with `stack.copy`.
    copy: Bandwidth | None = None


@dataclass(kw_only=True)
class LockConfig:
    """The `[lock]` table."""

    #: `fifo` or `random`.
    #: Default: "fifo".
    order: LockOrder | None = None
    #: Probability of the favoured core relative to each other core, 1 or more; for `random`.
    #: Default: 1.0.
    favoured_weight: float | None = None


@dataclass(kw_only=True)
class StackConfig:
    """The `[stack]` table."""

    #: System calls per request (S4-38: about 14 of IoMeter's, 0 of a kernel module), each at the cost of
    #: `costs.system_call`.
    #: Default: 1.
    system_calls: int | None = None
    #: Context switches per request in addition to the switches due to waiting (S4-38): helper threads of the process,
    #: each at the cost of `costs.context_switch`.
    #: Default: 0.0.
    extra_switches: float | None = None
    #: Copy data between the process and buffers of the kernel. If false, the device reads and writes the process'
    #: memory (direct I/O).
    #: Default: false.
    copy: bool | None = None
    #: Maximum size of the pieces of a request that go to the driver as one command (S1-52: 32 KiB; S0-1: one page).
    #: If omitted, pieces are as large as the driver accepts.
    buffer: Bytes | None = None
    #: Number of kernel buffers: the maximum number of commands between submission and completion. If omitted, no
    #: limit.
    buffers: int | None = None
    #: A write is complete for its thread when its data is copied and all its commands are with the driver (S1-56).
    #: Needs `copy`.
    #: Default: false.
    write_behind: bool | None = None


@dataclass(kw_only=True)
class CacheConfig:
    """The `[cache]` table: a page cache between processes and the block layer, with least recently used replacement,
    read-ahead, and write-back by a kernel thread."""

    #: Memory for pages.
    size: Bytes
    #: Size of a page.
    #: Default: "4KiB".
    page: Bytes | None = None
    #: Work for each page of a request: lookup, insertion, marking.
    #: Default: "0ps".
    page_cost: Cost | None = None
    #: Size of a read-ahead window. A sequential read fetches two windows: while one is used, the next is read. 0: no
    #: read-ahead.
    #: Default: "0B".
    read_ahead: Bytes | None = None
    #: Maximum size of a write-back command: adjacent dirty pages are written together.
    #: Default: "128KiB".
    cluster: Bytes | None = None
    #: Maximum number of write-back commands at the device.
    #: Default: 32.
    write_depth: int | None = None
    #: Background write-back begins when this share of the page cache is dirty, 0 to 1.
    #: Default: 0.1.
    dirty_background: float | None = None
    #: Maximum share of dirty pages; beyond it writers wait.
    #: Default: 0.2.
    dirty_limit: float | None = None
    #: Share of dirty pages at which waiting writers continue; if omitted, the limit itself. A lower share causes
    #: periods in which only old data is written (S4-25).
    dirty_resume: float | None = None
    #: Interval at which the kernel looks for old dirty pages.
    #: Default: "5s".
    flush_interval: Span | None = None
    #: Age from which a dirty page is old.
    #: Default: "30s".
    expire: Span | None = None
    #: A write is complete only when its data and the changed metadata are on the device (mount option `sync`, O_SYNC).
    #: Default: false.
    sync: bool | None = None


@dataclass(kw_only=True)
class FileSystemConfig:
    """The `[file_system]` table: one large file on the device, through the page cache."""

    #: Work for each request to locate its data.
    #: Default: "0ps".
    request_cost: Cost | None = None
    #: Amount of data that one page of metadata maps. The page must be in the cache before the data is read or written;
    #: a write that changes the page makes it dirty (ext2: an indirect block, 4 MiB with blocks of 4 KiB).
    #: Default: "4MiB".
    extent: Bytes | None = None
    #: Share of writes that change metadata, 0 to 1: writes that allocate blocks or change the times of the file.
    #: Default: 1.0.
    metadata_share: float | None = None
    #: Mode of the journal.
    #: Default: "none".
    journal: Journal | None = None
    #: Interval at which the journal's transaction is committed.
    #: Default: "5s".
    commit_interval: Span | None = None
    #: Size of the journal, at the start of the device.
    #: Default: "32MiB".
    journal_size: Bytes | None = None


@dataclass(kw_only=True)
class NetworkConfig:
    """The file of a network block target (S4-7, S4-42, S4-46): iSCSI by its costs, not by its bytes.

    Not modelled: congestion (the link is one server per direction), logins, more than one connection per session. Loss,
    damage and broken sessions are modelled only if `[faults]` asks for them. A session is a queue of the host. Each
    host core has one session, and thus represents a client machine with one core."""

    #: One line about the network, and where its numbers come from.
    #: Default: "".
    description: str | None = None
    #: The network port of the server, which all sessions share.
    link: LinkTable
    #: The storage server with the device.
    target: TargetTable
    #: Costs of the protocol on the machine with the workload.
    initiator: EndTable
    #: Faults to inject; if omitted, none.
    faults: NetworkFaultConfig | None = None


@dataclass(kw_only=True)
class LinkTable:
    """The `[link]` table: the directions are independent."""

    #: Line rate, in bytes per second.
    rate: Bandwidth
    #: Time from the last bit sent by one machine to its receipt by the other: cable, switch, adapter.
    latency: Span
    #: Maximum amount of data in a segment (TCP's MSS).
    #: Default: "1460B".
    segment: Bytes | None = None
    #: Headers, framing and gap of a segment: 78 B for TCP over IPv4 on Ethernet.
    #: Default: "78B".
    segment_overhead: Bytes | None = None
    #: Header of a command and of a completion (RFC 7143, clause 11.2.1: 48 B).
    #: Default: "48B".
    header: Bytes | None = None


@dataclass(kw_only=True)
class TargetTable:
    """The `[target]` table."""

    #: Number of server cores, 1 to 1024.
    #: Default: 1.
    cores: int | None = None
    #: Time to receive a command: protocol, block layer, the device's driver.
    command: Span
    #: Time to receive the completion from the device, and to build the completion for the host.
    response: Span
    #: Time of each segment, sent or received: interrupt share, TCP, IP, driver.
    segment: Span
    #: Rate at which one core sends data: copies and checksums.
    send: Bandwidth
    #: Rate at which one core receives data.
    receive: Bandwidth
    #: Number of switches between threads for one command (receiving, device, sending).
    #: Default: 0.0.
    switches: float | None = None
    #: Cost of a switch with one, two, three … active sessions; the last value also applies to more sessions.
    #: Default: [].
    switch: list[Span] | None = None
    #: Share by which all work of a command grows with each further active session: the loss in caches and between
    #: threads, in addition to switches.
    #: Default: 0.0.
    surcharge: float | None = None


@dataclass(kw_only=True)
class EndTable:
    """Costs of the protocol on one end of the connection."""

    #: Time to receive or build a command.
    command: Span
    #: Time to build or receive a completion.
    response: Span
    #: Time of each segment, sent or received: interrupt share, TCP, IP, driver.
    segment: Span
    #: Rate at which one core sends data: copies and checksums.
    send: Bandwidth
    #: Rate at which one core receives data.
    receive: Bandwidth


@dataclass(kw_only=True)
class NetworkFaultConfig:
    """The `[faults]` table of a network. Without the table, no faults are injected.

    A command with its data is one message, and its completion is another. A message has at most one kind of fault, so
    that the shares sum to at most 1; a repeated message can have the next fault."""

    #: Share of messages that arrive late, 0 to 1.
    #: Default: 0.0.
    delay: float | None = None
    #: The delay of late messages; up to an hour.
    delay_by: Span | None = None
    #: Share of messages that are lost, 0 to 1; they are sent again after `resend_after`.
    #: Default: 0.0.
    drop: float | None = None
    #: Time from the sending of a lost message to its next sending: the retransmission time-out of TCP (RFC 6298; the
    #: minimum in Linux is 200 ms).
    #: Default: "200ms".
    resend_after: Span | None = None
    #: Share of messages that arrive damaged, 0 to 1: their digest is wrong, the receiver reports it, and they are sent
    #: again at once (RFC 7143, clause 7.8).
    #: Default: 0.0.
    error: float | None = None
    #: Share of messages that break their session, 0 to 1: all incomplete commands of the session start again after
    #: `reconnect`, including commands in the device (RFC 7143, clause 7.5).
    #: Default: 0.0.
    reset: float | None = None
    #: Time of the run at which all sessions break, once.
    reset_at: Span | None = None
    #: Time from the break of a session until it accepts commands again (RFC 7143, clause 13.15, `DefaultTime2Wait`: 2
    #: s).
    #: Default: "2s".
    reconnect: Span | None = None
    #: Maximum number of attempts of a command, 1 to 1000. If the session breaks after the last
    #: attempt, the command ends in an error.
    #: Default: 5.
    tries: int | None = None


@dataclass(kw_only=True)
class FileMark:
    """A trace or a job file, with a checksum of its contents."""

    #: Path of the file.
    path: str
    #: SHA-256 of its bytes, as 64 hexadecimal digits.
    sha256: str

#: must be a time with its unit, such as "25us" or "1.5ms"
Span = str

#: The data of a run that are kept.
Keep = Literal["all", "summary", "none"]

#: The time in a trace that becomes time 0 of the run.
TraceOrigin = Literal["first", "absolute"]

#: must be a size with its unit, such as "4KiB" or "512B"
Bytes = str

#: Addresses of the objects of a trace that has object names instead of addresses.
ObjectIds = Literal["sector", "byte", "hash"]

#: How to handle a request that ends beyond the last byte of the target.
BeyondEnd = Literal["fail", "wrap", "skip"]

#: The driver of a simulated device.
DriverSpec = Literal["direct", "adapter", "network", "nvme", "ring"]

#: How NVMe commands are distributed over queues.
Queues = Literal["round-robin", "round-robin-as-printed", "per-core", "per-core-pool", "single", "weighted", "more-queues"]

#: The layer between a process and the driver.
StackKind = Literal["block", "scsi"]

#: How threads issue requests.
ThreadMode = Literal["sync", "async", "batch"]

#: How a thread waits for a completion.
CompletionWait = Literal["interrupt", "poll", "hybrid"]

#: When the driver rings doorbells.
Doorbell = Literal["each", "batch"]

#: must be KEY=VALUE,… of the ring driver
RingSpec = str

#: The engine that issues requests.
EngineKind = Literal["auto", "io_uring", "threads"]

#: The cores to which jobs are bound, in turn. With none, no job is bound to a core.
Pin = Union["list[int]", "NoneWord"]

NoneWord = Literal["none"]

#: A documented method of issuing requests to a target.
Method = Literal["default", "efficient", "latency"]

#: A number of requests, 1 or more, or all available requests.
Batch = Union[int, "AllWord"]

AllWord = Literal["all"]

#: How a job waits for completions.
ReapWait = Literal["sleep", "spin"]

#: Any device file. Its tables decide the kind of device.
AnyDevice = Union[Config, RingConfig, DelayConfig, ArrayConfig, DiskConfig, VolumeConfig]

#: Bits in a cell; also the number of page types in a block.
CellType = Literal["slc", "mlc", "tlc", "qlc"]

#: One time for all pages, or one for each page type from lower to upper (page n of a block has
#: type n modulo the bits in a cell).
PerLevel = Union["Span", "list[Span]"]

#: a bus such as "333MB/s", "25ns/B" or an ONFI mode: "onfi-sdr-0" to "-5", "onfi-nv-ddr-0" to "-5", "onfi-nv-ddr2-0" to "-10", "onfi-nv-ddr3-0" to "-19" or "onfi-nv-lpddr4-0" to "-19"
Bus = str

#: Which of the waiting transfers goes next on a channel. A transfer that has begun is never interrupted.
#: There are three kinds of transfer. *Commands*: command and address cycles of reads, erases and copies. *Data out*: a
#: page that was read, on its way to the controller. *Data in*: a program's data with its command cycles, or a page
#: that is moved through the controller, out and in again as one transfer. Transfers of the same kind go in the order
#: in which they became ready.
ChannelOrder = Literal["fcfs", "commands-first", "data-out-first", "commands-then-data-out"]

#: Planes of a die that may join in one operation, at most sixteen. When pages are moved through the controller,
#: programs of other data join them.
MultiPlane = Literal["off", "same-page", "any"]

#: How cleaning moves a page.
CopyMode = Literal["copy-back", "controller"]

#: How the victim of a cleaning is chosen among the closed blocks of a plane.
Cleaning = Literal["greedy", "fifo", "random", "d-choices", "cost-benefit", "windowed"]

#: How planes are chosen for writes.
Placement = Literal["static", "round-robin", "most-free", "least-busy"]

#: Which pages have blocks of their own, separate from other pages.
HotCold = Literal["off", "survivors", "classes"]

#: Wear levelling.
WearLevelling = Literal["off", "dynamic", "static"]

#: When the pages of a block that is cleaned are moved.
CleaningPace = Literal["whole", "paced"]

#: Which page leaves the buffer first.
BufferPolicy = Literal["none", "fifo", "lru", "clock", "bplru"]

#: must be a bandwidth with its unit, such as "333MB/s" or "3.2GB/s"
Bandwidth = str

#: How to handle a write that covers only part of a page.
PartialPage = Literal["read-modify-write", "whole-page"]

#: The `[host_link]` table.
LinkConfig = dict[str, Any]

#: The order in which requests enter a full device.
WaitingOrder = Literal["fcfs", "c-look"]

#: Commands that the arbiter takes from a queue at a time (base 2.0c, clause 5.27.1.1).
Burst = Union[Literal["unlimited"], int]

#: must be a power with its unit, such as "259mW"
Watts = str

#: must be a voltage with its unit, such as "3.3V"
Volts = str

#: must be a current with its unit, such as "15mA"
Amperes = str

#: When the CPU counts as active.
CpuRule = Literal["cores", "in-service"]

#: Contents of the device before the run.
Fill = Literal["empty", "sequential", "random"]

#: The engine that moves descriptors (S0-19).
DescriptorEngine = Literal["shared", "separate"]

#: The `[media]` table: the storage media (S0-44).
MediaConfig = dict[str, Any]

#: Distribution of a request's delay.
Spread = Literal["fixed", "exponential"]

#: The name of a device preset, or a table with the contents of a device file.
MemberSpec = Union[str, dict[str, Any]]

#: Which dirty data of the cache are written to the members first.
DestageOrder = Literal["address", "age"]

#: How the controller handles a flush.
FlushPolicy = Literal["complete", "pass-on"]

#: When the controller reads ahead: the read policy of a virtual disk.
ReadAheadPolicy = Literal["none", "always", "adaptive"]

#: The order in which logical blocks fill the tracks of a zone.
TrackOrder = Literal["cylinder", "cylinder-serpentine", "surface-serpentine"]

#: Which waiting command the arm serves next.
Scheduler = Literal["fcfs", "sstf", "sptf", "elevator"]

#: How requests are generated.
WorkloadKind = Literal["mix", "disksim-synthetic"]

#: Arrival process of an open loop. Equal gaps and bursts begin at 0, so that a rate times a duration
#: is the number of requests; drawn gaps begin with a gap.
ArrivalKind = Literal["poisson", "uniform", "fixed", "bursts"]

#: How offsets are chosen.
Pattern = Literal["sequential", "random", "random-once", "zipf", "hot-cold"]

#: must be a percentage, such as "50%"
Percent = str

#: Source of random numbers of `DiskSimSynthetic`.
Numbers = Literal["drand48", "seeded"]

#: must be a frequency with its unit, such as "2.66GHz"
Frequency = str

#: must be a time or cycles, such as "250ns" or "2000cycles"
Cost = str

#: The order in which cores get a lock, or a place in a full queue.
LockOrder = Literal["fifo", "random"]

#: Journal for changes of metadata.
Journal = Literal["none", "ordered", "data"]

__all__ = [
    "RunSpec",
    "TraceSpec",
    "HostSpec",
    "RealSpec",
    "WriteSpec",
    "FileContents",
    "Config",
    "FlashConfig",
    "FtlConfig",
    "PageMapConfig",
    "PageClass",
    "DftlConfig",
    "LogBlockConfig",
    "BufferConfig",
    "ControllerConfig",
    "QueueConfig",
    "NvmeControllerConfig",
    "NamespaceConfig",
    "OperationalState",
    "EnergyConfig",
    "FlashPower",
    "CpuPower",
    "DramPower",
    "BusPower",
    "PowerConfig",
    "PowerState",
    "Precondition",
    "FaultConfig",
    "RingConfig",
    "CardConfig",
    "DmaConfig",
    "TlpConfig",
    "DelayConfig",
    "DelayTable",
    "ArrayConfig",
    "ArrayTable",
    "ControllerTable",
    "DiskConfig",
    "DiskTable",
    "ZoneTable",
    "ZonesByRule",
    "SeekTable",
    "OverheadTable",
    "CacheTable",
    "DiskPower",
    "VolumeConfig",
    "VolumeTable",
    "IopsLimit",
    "BandwidthLimit",
    "WorkloadConfig",
    "Arrivals",
    "BlockSize",
    "AddressPattern",
    "WritesApart",
    "WriteData",
    "DiskSimSynthetic",
    "HostConfig",
    "CpuConfig",
    "CostConfig",
    "LockConfig",
    "StackConfig",
    "CacheConfig",
    "FileSystemConfig",
    "NetworkConfig",
    "LinkTable",
    "TargetTable",
    "EndTable",
    "NetworkFaultConfig",
    "FileMark",
]
