//! The host over a device with fixed service times, against closed forms.

mod costs;

use proptest::prelude::*;
use ssdyno_block::conformance::check_target;
use ssdyno_block::{BlockTarget, Completion, Op, Request, Status, SubmitError, Time, Token};

use crate::{
    Account, Choice, CompletionWait, CpuCause, Host, HostConfig, HostPort, HostUse, LockOrder,
    Registers, ThreadMode,
};

/// Queues over `servers` that serve in order, each command for `service`.
#[derive(Debug)]
pub(crate) struct FixedPort {
    cores: u16,
    queues: u16,
    shared: bool,
    depth: usize,
    service: Time,
    free_at: Vec<Time>,
    in_queue: Vec<usize>,
    pub(crate) writes: u64,
    /// Ready and told; ready and not told, in order of time.
    done: Vec<Vec<Completion>>,
    running: Vec<(Time, u16, Completion)>,
    next: u16,
    unrung: Vec<bool>,
    /// Registers that a submission reads, as with AHCI (S1-4).
    reads: u32,
}

impl FixedPort {
    pub(crate) fn new(
        cores: u16,
        queues: u16,
        shared: bool,
        depth: usize,
        servers: usize,
    ) -> FixedPort {
        FixedPort {
            cores,
            queues,
            shared,
            depth,
            service: Time::from_us(10),
            free_at: vec![Time::ZERO; servers],
            in_queue: vec![0; queues.into()],
            writes: 0,
            done: vec![Vec::new(); queues.into()],
            running: Vec::new(),
            next: 0,
            unrung: vec![false; queues.into()],
            reads: 0,
        }
    }
}

impl HostPort for FixedPort {
    fn capacity_bytes(&self) -> u64 {
        1 << 30
    }
    fn sector_bytes(&self) -> u32 {
        512
    }
    fn transfer_bytes_max(&self) -> u32 {
        128 << 10
    }
    fn locks(&self) -> u16 {
        self.queues
    }
    fn choose(&mut self, core: u16, _: u8) -> Choice {
        if self.shared {
            self.next = (self.next + 1) % self.queues;
            return Choice { queue: self.next, lock: Some(self.next) };
        }
        Choice { queue: core, lock: None }
    }
    fn shared(&self) -> bool {
        self.shared
    }
    fn core_of(&self, vector: u16) -> u16 {
        vector % self.cores
    }
    fn submit(
        &mut self,
        now: Time,
        queue: u16,
        request: Request,
        token: Token,
        more: bool,
    ) -> Result<Registers, SubmitError> {
        let place = usize::from(queue);
        if self.in_queue[place] == self.depth {
            return Err(SubmitError::Full);
        }
        self.in_queue[place] += 1;
        assert!(
            request.end_bytes().unwrap() <= self.capacity_bytes() && request.length_bytes < 1 << 20
        );
        self.writes += if request.op == Op::Write { u64::from(request.length_bytes) } else { 0 };
        self.unrung[place] = more;
        let server = self.free_at.iter_mut().min().unwrap();
        let end = (*server).max(now) + self.service;
        *server = end;
        let done = Completion { token, status: Status::Ok, accepted: now, completed: end };
        let told = end + Time::from_ns(300);
        let at = self.running.partition_point(|(other, ..)| *other <= told);
        self.running.insert(at, (told, queue, done));
        Ok(Registers { writes: u32::from(!more), reads: self.reads })
    }
    fn ring(&mut self, _: Time, queue: u16) -> Registers {
        assert!(std::mem::take(&mut self.unrung[usize::from(queue)]), "rung for nothing");
        Registers { writes: 1, reads: 0 }
    }
    fn next_event(&self) -> Option<Time> {
        self.running.first().map(|(at, ..)| *at)
    }
    fn advance(&mut self, until: Time, vectors: &mut Vec<u16>) -> Time {
        let Some(now) = self.next_event().filter(|at| *at <= until) else { return Time::ZERO };
        let due = self.running.partition_point(|(at, ..)| *at <= now);
        for (_, queue, done) in self.running.drain(..due) {
            self.done[usize::from(queue)].push(done);
            vectors.push(queue);
        }
        now
    }
    fn complete(&mut self, now: Time, vector: u16, done: &mut Vec<Completion>) -> Registers {
        let ready = &mut self.done[usize::from(vector)];
        assert!(ready.iter().all(|c| c.completed <= now));
        self.in_queue[usize::from(vector)] -= ready.len();
        let writes = u32::from(!ready.is_empty());
        done.append(ready);
        Registers { writes, reads: 0 }
    }
}

#[derive(Debug)]
pub(crate) struct Target(pub(crate) Host<FixedPort>);

impl BlockTarget for Target {
    fn capacity_bytes(&self) -> u64 {
        self.0.port().capacity_bytes()
    }
    fn submit(&mut self, now: Time, request: Request, token: Token) -> Result<(), SubmitError> {
        self.check(&request)?;
        self.0.submit(now, request, token)
    }
    fn reap(&mut self, now: Time, out: &mut Vec<Completion>) {
        self.0.reap(now, out);
    }
    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }
}

pub(crate) const HOST: &str = r#"
[cpu]
cores = 8
clock = "1GHz"
idle_exit = "500ns"
active_power = "8W"
idle_power = "1W"
[costs]
system_call = "100ns"
request = "200ns"
piece = "50ns"
scsi = "300ns"
command = "150ns"
lock = "20ns"
lock_handover = "80ns"
register_write = "60ns"
interrupt = "600ns"
completion = "180ns"
wakeup = "250ns"
context_switch = "900ns"
poll = "40ns"
copy = "1GB/s"
"#;

pub(crate) fn config() -> HostConfig {
    HostConfig::parse(HOST).unwrap()
}

pub(crate) fn plan(cores: u16, mode: ThreadMode) -> HostUse {
    HostUse {
        cores,
        mode,
        threads: u32::from(cores),
        waiting: CompletionWait::Interrupt,
        scsi: false,
        doorbell_per_batch: false,
        classes: Vec::new(),
    }
}

/// A closed loop of `depth` until `total` are done; the requests come back in `Completion`s.
pub(crate) fn load(
    host: &mut Target,
    request: Request,
    depth: u32,
    total: u64,
) -> (Time, Vec<Completion>) {
    let (mut now, mut issued, mut all, mut batch) = (Time::ZERO, 0, Vec::new(), Vec::new());
    for token in 0..depth {
        host.submit(now, request, Token(token)).unwrap();
        issued += 1;
    }
    let mut last = now;
    while let Some(next) = host.next_event() {
        assert!(next >= now, "time went back");
        now = next;
        host.reap(now, &mut batch);
        for done in batch.drain(..) {
            assert!(done.accepted <= done.completed && done.completed == now);
            last = now;
            all.push(done);
            if issued < total {
                issued += 1;
                host.submit(now, request, done.token).unwrap();
            }
        }
    }
    assert_eq!(all.len() as u64, issued, "every request is answered once");
    settled(host, issued);
    (last, all)
}

/// What must hold once everything is over.
pub(crate) fn settled(host: &Target, requests: u64) {
    let account = host.0.account();
    assert_eq!(account.requests, requests);
    assert_eq!(account.delivered_by_core.iter().sum::<u64>(), requests);
    assert_eq!(host.0.commands.in_use, 0);
    assert!(host.0.contention.nobody_waits());
    if host.0.setup.plan.waiting == CompletionWait::Interrupt {
        assert_eq!(account.messages, account.interrupts + account.interrupts_merged);
    }
    for core in 0..account.cpu.cores() {
        let elapsed = host.0.now.max(host.0.cores[core].busy_until);
        assert!(account.cpu.of_core(core) <= elapsed, "core {core} worked longer than there was");
    }
}

pub(crate) fn account(target: &Target) -> &Account {
    target.0.account()
}

const READ: Request = Request::read(0, 4096);

/// Everything on the way adds up where nothing waits.
#[test]
fn one_thread_takes_the_sum_of_all_costs() {
    let port = FixedPort::new(1, 1, false, 64, 1);
    let mut host = Target(Host::new(&config(), plan(1, ThreadMode::Sync), port, 1).unwrap());
    let (_, all) = load(&mut host, READ, 1, 100);
    // System call, request, piece, command; device; delivery, idle exit, entry, completion,
    // wake-up, head doorbell, switch. The doorbell of the submission overlaps with the device.
    let expected = 100 + 200 + 50 + 150 + 10_000 + 300 + 500 + 600 + 180 + 250 + 60 + 900;
    let gap = all[50].completed - all[49].completed;
    assert_eq!(gap, Time::from_ns(expected));
    let cpu = &account(&host).cpu;
    let each = 100 + 200 + 50 + 150 + 60 + 600 + 180 + 250 + 60 + 900;
    // The first switch to the thread, when it starts, comes on top of one for each request.
    assert_eq!(cpu.total(), Time::from_ns(each * 100 + 900));
    assert_eq!(cpu.of(CpuCause::Registers), Time::from_ns(120 * 100));
}

/// A core that never idles serves 1 / (CPU time of a request); latency follows by Little.
#[test]
fn a_busy_core_bounds_the_rate() {
    let port = FixedPort::new(1, 1, false, 64, 64);
    let mut host = Target(Host::new(&config(), plan(1, ThreadMode::Sync), port, 1).unwrap());
    let (end, _) = load(&mut host, READ, 32, 20_000);
    let account = account(&host);
    let busy = account.cpu.total().as_s_f64() / end.as_s_f64();
    assert!(busy > 0.995, "{busy}");
    // The sum of the costs above, of which the interrupt may be shared; 32 first switches.
    let each = (account.cpu.total().as_ns_f64() - 32.0 * 900.0) / 20_000.0;
    assert!((1_890.0..=2_550.0).contains(&each), "{each}");
    let shared = 20_000 - account.interrupts;
    assert_eq!(account.messages, account.interrupts + account.interrupts_merged);
    assert!((each - (2_550.0 - 600.0 * shared as f64 / 20_000.0)).abs() < 62.0, "{each}");
}

#[test]
fn polling_trades_cpu_for_latency() {
    let run = |waiting| {
        let port = FixedPort::new(1, 1, false, 64, 1);
        let plan = HostUse { waiting, ..plan(1, ThreadMode::Sync) };
        let mut host = Target(Host::new(&config(), plan, port, 1).unwrap());
        let (end, _) = load(&mut host, READ, 1, 1_000);
        (end.as_ns_f64() / 1_000.0, account(&host).cpu.total().as_s_f64() / end.as_s_f64())
    };
    let (interrupt, interrupt_cpu) = run(CompletionWait::Interrupt);
    let (poll, poll_cpu) = run(CompletionWait::Poll);
    let (hybrid, hybrid_cpu) = run(CompletionWait::Hybrid);
    assert!(poll <= hybrid && hybrid < interrupt, "{poll} {hybrid} {interrupt}");
    assert!(interrupt_cpu < hybrid_cpu && hybrid_cpu < poll_cpu && poll_cpu > 0.95);
    // Half of the device's time, less what waking up takes, is slept through.
    assert!(hybrid_cpu < 0.85, "{hybrid_cpu}");
}

/// Share of the requests by core, in order.
fn shares(target: &Target) -> Vec<f64> {
    let account = account(target);
    let all = account.requests as f64;
    account.delivered_by_core.iter().map(|n| *n as f64 / all).collect()
}

/// S1-59, S1-60, S1-70: one queue whose lock and places are drawn for favours one core; the
/// seed decides which. Many queues, or queues of their own, favour nobody.
#[test]
fn one_shared_queue_favours_one_core() {
    let mut config = config();
    config.lock.order = LockOrder::Random;
    config.lock.favoured_weight = 3.0;
    let run = |queues, shared, depth, seed| {
        let port = FixedPort::new(8, queues, shared, depth, 2);
        let plan = HostUse { threads: 8, ..plan(8, ThreadMode::Async) };
        let mut host = Target(Host::new(&config, plan, port, seed).unwrap());
        load(&mut host, READ, 64, 20_000);
        shares(&host)
    };
    let mut favoured = std::collections::BTreeSet::new();
    for seed in 0..5 {
        let one = run(1, true, 16, seed);
        let best = (0..8).max_by(|a, b| one[*a].total_cmp(&one[*b])).unwrap();
        let next = (0..8).filter(|c| *c != best).map(|c| one[c]).fold(0.0, f64::max);
        assert!(one[best] > 1.5 * next, "seed {seed}: {one:?}");
        favoured.insert(best);
        for many in [run(31, true, 64, seed), run(8, false, 64, seed)] {
            assert!(many.iter().all(|share| (share - 0.125).abs() < 0.01), "{many:?}");
        }
    }
    assert!(favoured.len() > 1, "{favoured:?}");
}

/// S1-56: enqueued at the speed of the copies, completed at that of the device.
#[test]
fn writes_complete_early_where_they_are_copied() {
    let mut config = config();
    config.stack.copy = true;
    config.stack.write_behind = true;
    config.stack.buffers = Some(256);
    let run = |request, total| {
        let port = FixedPort::new(1, 1, false, 4095, 1);
        let mut host = Target(Host::new(&config, plan(1, ThreadMode::Sync), port, 1).unwrap());
        let (end, all) = load(&mut host, request, 1, total);
        (end, all.len(), account(&host).clone())
    };
    let (end, written, account) = run(Request::write(0, 4096), 200);
    // 200 writes fit the buffers: each costs the copy (4.096 us) and the way, not 10 us.
    assert!(end < Time::from_us(200 * 6), "{end}");
    assert_eq!((written as u64, account.delivered_early), (200, 200));
    assert!(account.device_bytes_at_last_delivery < 110 * 4096);
    let (end, ..) = run(Request::write(0, 4096), 2_000);
    // In the long run buffers come back at the speed of the device only.
    assert!(end > Time::from_us(10 * (2_000 - 257)), "{end}");
    let (end, ..) = run(READ, 200);
    assert!(end > Time::from_us(200 * 14), "a read waits for device and copy: {end}");
}

/// S1-64, S1-65: 1000 a thread, then wait for all; latency by Little.
#[test]
fn a_batch_is_reported_as_a_whole() {
    let port = FixedPort::new(2, 2, false, 4095, 4);
    let plan = HostUse { threads: 2, doorbell_per_batch: true, ..plan(2, ThreadMode::Batch) };
    let mut host = Target(Host::new(&config(), plan, port, 1).unwrap());
    let (end, all) = load(&mut host, READ, 200, 2_000);
    let times: std::collections::BTreeSet<_> =
        all.iter().map(|done| (done.token.0 % 2, done.completed)).collect();
    assert_eq!(times.len(), 20, "20 batches of 100");
    // 4 servers of 10 us: 400 000/s at most.
    assert!(end > Time::from_us(5_000) && end < Time::from_us(6_500), "{end}");
    // One doorbell a batch, and one of the head for each interrupt that found something.
    let account = account(&host);
    let heads = account.interrupts - account.interrupts_empty;
    assert_eq!(account.register_writes - heads, 20, "{account:?}");
}

#[test]
fn requests_are_cut_into_pieces() {
    let mut config = config();
    config.stack.buffer = Some("32KiB".parse().unwrap());
    let port = FixedPort::new(1, 1, false, 64, 4);
    let mut host = Target(Host::new(&config, plan(1, ThreadMode::Sync), port, 1).unwrap());
    load(&mut host, Request::read(0, 4 << 20), 1, 10);
    assert_eq!(account(&host).commands, 1_280);
    assert!(account(&host).queue_full > 0, "128 pieces do not fit 64 places");
    // Who waits for room does not prepare the piece again.
    let block_layer = Time::from_ns(10 * 200 + 1_280 * 50);
    assert_eq!(account(&host).cpu.of(CpuCause::BlockLayer), block_layer);
}

#[test]
fn a_plan_must_fit_the_host() {
    let port = FixedPort::new(1, 1, false, 1, 1);
    let error = Host::<_>::new(&config(), plan(9, ThreadMode::Sync), port, 1).unwrap_err();
    assert!(error.to_string().contains("9 cores are requested; the host has 8"), "{error}");
}

fn some_plan() -> impl Strategy<Value = (HostConfig, HostUse, u16, bool, usize)> {
    let mode =
        prop_oneof![Just(ThreadMode::Sync), Just(ThreadMode::Async), Just(ThreadMode::Batch)];
    let waiting = prop_oneof![
        3 => Just(CompletionWait::Interrupt),
        1 => Just(CompletionWait::Poll),
        1 => Just(CompletionWait::Hybrid)
    ];
    let stack = (any::<bool>(), any::<bool>(), 1u32..40, any::<bool>());
    let shape = (1u16..5, 1u32..9, any::<bool>(), 1usize..20, any::<bool>(), any::<bool>());
    (mode, waiting, stack, shape).prop_map(|(mode, waiting, stack, shape)| {
        let (copy, write_behind, buffers, random) = stack;
        let (cores, threads, shared, depth, doorbell_per_batch, scsi) = shape;
        let mut config = config();
        config.stack.copy = copy;
        config.stack.write_behind = copy && write_behind;
        config.stack.buffers = Some(buffers);
        config.stack.buffer = Some("4KiB".parse().unwrap());
        config.lock.order = if random { LockOrder::Random } else { LockOrder::Fifo };
        let classes = vec![0, 3];
        let plan = HostUse { cores, mode, threads, waiting, scsi, doorbell_per_batch, classes };
        (config, plan, if shared { 3 } else { cores }, shared, depth)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any plan, with queues and buffers of any size: every request completes once, two runs
    /// are the same, and nothing is left over.
    #[test]
    fn every_plan_keeps_the_contract((config, plan, queues, shared, depth) in some_plan()) {
        check_target(|| {
            let port = FixedPort::new(plan.cores, queues, shared, depth, 3);
            Target(Host::new(&config, plan.clone(), port, 7).unwrap())
        });
        let port = FixedPort::new(plan.cores, queues, shared, depth, 3);
        let mut host = Target(Host::new(&config, plan, port, 7).unwrap());
        load(&mut host, Request::write(4096, 20 << 10), 24, 500);
    }
}
