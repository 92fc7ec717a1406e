//! The events of the near future, in slots of time.

/// Slots of the wheel: what lies further ahead than their widths together is for others to keep.
const SLOTS: usize = 256;
/// Bits of a word of the map of slots.
const WORD: usize = 64;
const WORDS: usize = SLOTS / WORD;
/// Events of a slot that are passed to insert one: with more, the slot is too crowded.
const WALK: u32 = 8;
/// No node.
const NONE: u32 = u32::MAX;
/// Insertions after which the width of a slot is judged anew, at least.
const PERIOD: u32 = 1024;

/// An event: its key, whose upper half is its time, and the next one of its slot.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: u128,
    next: u32,
}

/// The events of a slot, sorted.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: u32,
    tail: u32,
}

const EMPTY: Slot = Slot { head: NONE, tail: NONE };

/// Sorted keys, of which none lies before the last one taken: as good as all operations take a time that
/// does not depend on how many there are (Brown, "Calendar queues", CACM 31(10), 1988). What does not fit is
/// refused.
#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    nodes: Vec<Node>,
    /// The first of the unused nodes, which are linked.
    unused: u32,
    slots: Box<[Slot; SLOTS]>,
    /// Slots that hold something.
    filled: [u64; WORDS],
    /// Logarithm of the width of a slot in picoseconds.
    shift: u32,
    /// Insertions from one judgement of the width to the next, and until the next.
    period: u32,
    left: u32,
    /// Of these, those refused because they lie too far ahead, and the events that others passed.
    far: u32,
    passed: u32,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            nodes: Vec::with_capacity(SLOTS),
            unused: NONE,
            slots: Box::new([EMPTY; SLOTS]),
            filled: [0; WORDS],
            // 131 ns a slot, 34 us in all: what flash and links have to do.
            shift: 17,
            period: PERIOD,
            left: PERIOD,
            far: 0,
            passed: 0,
        }
    }

    /// Adds `key`; false if it is too far ahead of `last_ps`, the time of the last event taken, or its slot
    /// too crowded.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: u128, last_ps: u64) -> bool {
        self.left = self.left.saturating_sub(1);
        let number = (key >> 64) as u64 >> self.shift;
        if number - (last_ps >> self.shift) >= SLOTS as u64 {
            self.far += 1;
            return false;
        }
        let place = number as usize % SLOTS;
        let Slot { head, tail } = self.slots[place];
        if head == NONE {
            let node = self.node(key, NONE);
            self.slots[place] = Slot { head: node, tail: node };
            self.filled[place / WORD] |= 1 << (place % WORD);
            return true;
        }
        if self.nodes[tail as usize].key < key {
            let node = self.node(key, NONE);
            self.nodes[tail as usize].next = node;
            self.slots[place].tail = node;
            return true;
        }
        if key < self.nodes[head as usize].key {
            let node = self.node(key, head);
            self.slots[place].head = node;
            return true;
        }
        self.insert_between(key, head)
    }

    /// Adds `key` behind `head` and before the tail of its slot.
    #[inline(never)]
    fn insert_between(&mut self, key: u128, head: u32) -> bool {
        let mut before = head;
        for _ in 0..WALK {
            self.passed += 1;
            let next = self.nodes[before as usize].next;
            if key < self.nodes[next as usize].key {
                let node = self.node(key, next);
                self.nodes[before as usize].next = node;
                return true;
            }
            before = next;
        }
        false
    }

    /// A node of these contents.
    #[inline(always)]
    fn node(&mut self, key: u128, next: u32) -> u32 {
        if self.unused == NONE {
            self.grow();
        }
        let place = self.unused;
        let entry = &mut self.nodes[place as usize];
        self.unused = entry.next;
        *entry = Node { key, next };
        place
    }

    /// One more node, unused.
    #[cold]
    fn grow(&mut self) {
        self.unused = self.nodes.len() as u32;
        self.nodes.push(Node { key: 0, next: NONE });
    }

    /// The slot of the least key, where `last_ps` is the time of the last event taken.
    #[inline(always)]
    fn first_slot(&self, last_ps: u64) -> Option<usize> {
        let from = (last_ps >> self.shift) as usize % SLOTS;
        let (word, bit) = (from / WORD, from % WORD);
        let here = self.filled[word] >> bit;
        if here != 0 {
            return Some(from + here.trailing_zeros() as usize);
        }
        // The words after this one, around to the lower bits of this one again.
        (1..=WORDS).map(|ahead| (word + ahead) % WORDS).find_map(|word| {
            let filled = self.filled[word];
            (filled != 0).then(|| word * WORD + filled.trailing_zeros() as usize)
        })
    }

    /// The least key, and its slot for [`remove`](Wheel::remove).
    #[inline(always)]
    pub(crate) fn first(&self, last_ps: u64) -> Option<(u128, usize)> {
        let slot = self.first_slot(last_ps)?;
        Some((self.nodes[self.slots[slot].head as usize].key, slot))
    }

    /// Takes the first of `slot` out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slot: usize) {
        let head = self.slots[slot].head;
        let entry = &mut self.nodes[head as usize];
        let next = std::mem::replace(&mut entry.next, self.unused);
        self.unused = head;
        self.slots[slot].head = next;
        if next == NONE {
            self.filled[slot / WORD] &= !(1 << (slot % WORD));
        }
    }

    /// True if the width of a slot is to be judged.
    #[inline(always)]
    pub(crate) fn is_period_over(&self) -> bool {
        self.left == 0
    }

    /// The logarithm of the width of a slot that would be better, if there is one.
    pub(crate) fn better_width(&mut self) -> Option<u32> {
        let Wheel { period, far, passed, shift, .. } = *self;
        self.begin_period(0);
        if far > period / 32 {
            return (shift < 48).then_some(shift + 1);
        }
        // Half the reach must still be enough.
        (passed > period && far < period / 128 && shift > 0).then(|| shift - 1)
    }

    /// Counts anew, after `keys` were moved: the period is long enough that moving them costs little.
    pub(crate) fn begin_period(&mut self, keys: usize) {
        self.period = PERIOD.max((keys as u32).saturating_mul(8));
        (self.left, self.far, self.passed) = (self.period, 0, 0);
    }

    /// Empties the wheel into `out`, and gives its slots another width.
    pub(crate) fn drain(&mut self, shift: u32, out: &mut Vec<u128>) {
        for slot in self.slots.iter_mut() {
            let mut at = std::mem::replace(slot, EMPTY).head;
            while at != NONE {
                let Node { key, next } = self.nodes[at as usize];
                out.push(key);
                at = next;
            }
        }
        self.nodes.clear();
        self.unused = NONE;
        self.filled = [0; WORDS];
        self.shift = shift;
    }

    /// How many slots hold something: there are at least as many events.
    pub(crate) fn slots_filled(&self) -> usize {
        self.filled.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The logarithm of the width of a slot in picoseconds.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }
}
