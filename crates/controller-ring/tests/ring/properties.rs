//! For anything that is written to the card: a response or an error, never a panic.

use proptest::prelude::*;

use super::*;

/// Registers that are written at random, with values that reach something.
const WRITABLE: [u32; 12] = [
    layout::CONTROL,
    layout::RING_LOW,
    layout::RING_HIGH,
    layout::RING_SIZE,
    layout::RESPONSE,
    layout::PREFETCH,
    layout::INTERRUPT_BATCH,
    layout::INTERRUPT_TIMEOUT,
    layout::INTERRUPT_MASK,
    layout::INTERRUPT_ACKNOWLEDGE,
    layout::NEXT_OFFSET,
    layout::NEXT_SIZE,
];

#[derive(Clone, Debug)]
enum Step {
    Write(usize, u32),
    Wild(u32, u32),
    Descriptor(u32, [u8; 32]),
    Sound(u32),
    Doorbell(u32, u32),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small = prop_oneof![Just(0u32), Just(1), 0u32..70, any::<u32>()];
    let step = prop_oneof![
        2 => (0..WRITABLE.len(), small).prop_map(|(at, value)| Step::Write(at, value)),
        1 => (any::<u32>(), any::<u32>()).prop_map(|(at, value)| Step::Wild(at, value)),
        2 => (0u32..16, any::<[u8; 32]>()).prop_map(|(at, bytes)| Step::Descriptor(at, bytes)),
        4 => (1u32..16).prop_map(Step::Sound),
        3 => (0u32..20, 0u32..40).prop_map(|(offset, size)| Step::Doorbell(offset, size)),
        4 => (0u64..200_000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// For anything that the host writes, the card responds with a status or a fault, and comes to
    /// rest.
    #[test]
    fn nothing_that_the_host_does_breaks_the_card(steps in steps(), mode in 0u32..3) {
        let mode = ResponseMode::from_bits(mode).unwrap();
        let mut host = Host::new(&preset(), 16, mode, 2).on();
        for step in steps {
            match step {
                Step::Write(at, value) => host.write(WRITABLE[at], value),
                Step::Wild(at, value) => host.write((at % layout::BAR_BYTES) & !3, value),
                Step::Descriptor(at, bytes) => {
                    let ring = host.ring;
                    host.pci.dma_write(&ring, at * layout::DESCRIPTOR_BYTES, &bytes);
                }
                Step::Sound(size) => {
                    let first = host.number;
                    host.put_all(RingCommandKind::Write, size.into());
                    host.give(first, size);
                }
                Step::Doorbell(offset, size) => {
                    host.write(layout::NEXT_OFFSET, offset);
                    host.write(layout::NEXT_SIZE, size);
                }
                Step::Wait(ns) => {
                    host.now += Time::from_ns(ns);
                    host.pci.advance(host.now);
                }
            }
        }
        host.settle();
        // After a reset it works as ever.
        host.write(layout::CONTROL, 0);
        prop_assert_eq!(host.read(layout::STATUS), 0);
        let mut again = Host { number: 0, ..host };
        let ring = again.ring;
        for (register, value) in [
            (layout::RING_LOW, ring.address as u32),
            (layout::RING_HIGH, (ring.address >> 32) as u32),
            (layout::RING_SIZE, 16),
            (layout::RESPONSE, 0),
            (layout::PREFETCH, 0),
            (layout::INTERRUPT_MASK, 0),
        ] {
            again.write(register, value);
        }
        let mut again = again.on();
        again.put_all(RingCommandKind::Read, 5);
        again.give(0, 5);
        again.settle();
        prop_assert_eq!(again.card().fault(), None);
        prop_assert!((0..5).all(|number| again.get(number).status == layout::STATUS_SUCCESS));
        prop_assert!((0..5).all(|number| !again.get(number).is_command()));
    }
}
