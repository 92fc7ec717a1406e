//! The worked example of `docs/add_an_ftl.md` stays true.

#[path = "../../examples/ring_log.rs"]
mod ring_log;

#[test]
fn the_example_passes_the_suite() {
    ring_log::main().unwrap();
}
