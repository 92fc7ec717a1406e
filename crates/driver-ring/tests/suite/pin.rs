//! A card that has nothing but its interrupt pin.

use ssdyno_block::{Request, Status, Time, Token};
use ssdyno_controller_ring::{RingCard, RingConfig};
use ssdyno_driver_ring::{
    CompletionPolicy, ResponseMode, RingDriver, RingDriverOptions, SimulatedRing, Submission,
};
use ssdyno_pci::{BusMaster, Identity, PciDevice, PciTiming, SimulatedPci};

const ZC706: &str = include_str!("../../../../presets/devices/zc706-ring.toml");

struct PinOnly(RingCard);

impl PciDevice for PinOnly {
    fn identity(&self) -> Identity {
        Identity { msix_vectors: 0, msi_vectors: 0, ..self.0.identity() }
    }
    fn bar_read(&mut self, now: Time, bar: u8, offset: u32) -> u32 {
        self.0.bar_read(now, bar, offset)
    }
    fn bar_write(&mut self, now: Time, bar: u8, offset: u32, value: u32) {
        self.0.bar_write(now, bar, offset, value);
    }
    fn reset(&mut self, now: Time) {
        self.0.reset(now);
    }
    fn advance(&mut self, now: Time, bus: &mut dyn BusMaster) {
        self.0.advance(now, bus);
    }
    fn next_event(&self) -> Option<Time> {
        self.0.next_event()
    }
}

/// The acknowledgement of one interrupt takes `way` to the card; what the card returns meanwhile must
/// not be forgotten. The way is tried in steps of 100 ns up to 10 us, longer than a command takes.
#[test]
fn an_acknowledgement_on_its_way_hides_no_response() {
    for step in 1..=100 {
        let way = Time::from_ns(100) * step;
        let timing =
            PciTiming { posted_write: way, read_round_trip: way * 2, interrupt: Time::from_us(1) };
        let config = RingConfig::parse(ZC706).unwrap();
        let card = PinOnly(RingCard::new(&config, 1).unwrap());
        let options = RingDriverOptions {
            response: ResponseMode::Each,
            completion: CompletionPolicy::PerReturn,
            ..RingDriverOptions::default()
        };
        let driver = RingDriver::new(SimulatedPci::new(card, timing), options).unwrap();
        let mut ring = SimulatedRing::new(driver);
        for page in 0..9 {
            let request = Request::read(u64::from(page) * 4096, 4096);
            let token = Token(page);
            let submission = Submission { request, token, address: None, urgent: false };
            ring.submit(Time::ZERO, submission).unwrap();
        }
        let mut done = Vec::new();
        while ring.driver.in_flight() > 0 {
            assert!(ring.step(&mut done), "something happens while requests are in flight");
        }
        assert!(done.len() == 9 && done.iter().all(|done| done.status == Status::Ok));
        let last = done.iter().map(|done| done.completed).max();
        assert!(
            last < Some(Time::from_ms(500).into()),
            "with {way:?} a request waited for the limit"
        );
    }
}
