//! The obligations of each step of an exchange that a later step would hide.

use ssdyno_flash::OpKind;

use super::*;
use crate::blocks::Searches;
use crate::conformance::{ftl_config, small_flash};
use crate::contract::FtlFacts;
use crate::map::NONE;
use crate::{Blocks, Ftl, Plane, Precondition, PrepareWatch};

/// One plane with a hot and a cold class, full and in steady state. Seed 1.
fn filled(more: &str) -> Classes {
    let classes = r#"[{"space":0.25,"writes":0.8},{"space":0.75,"writes":0.2}]"#;
    let more = format!(r#","hot_cold":"classes","page.classes":{classes}{more}"#);
    let (flash, config) = (small_flash(1, 1, 64, 16), ftl_config("page", 0.4, &more));
    let geometry = flash.geometry().unwrap();
    let facts = FtlFacts { geometry, flash: &flash, config: &config, seed: 1 };
    let mut made = Classes::new(&facts).unwrap();
    made.precondition(&Precondition::default(), 1, &mut PrepareWatch::new(&mut |_| true)).unwrap();
    made
}

/// The blocks of the device that `ops` erase.
fn erased(classes: &Classes, ops: &[FlashOp]) -> Vec<u32> {
    let erases = ops.iter().filter(|op| op.kind == OpKind::Erase);
    erases.map(|op| classes.geometry.block_of_page(op.page)).collect()
}

/// No block has changed places, so the cold class can know of the hot one's wear from here alone.
#[test]
fn a_class_lags_behind_the_most_worn_block_of_any() {
    let mut classes = filled(r#","wear_levelling":"static","wear_threshold":20"#);
    let mut out = Vec::new();
    let most = classes.members[1].map.blocks.erases_most(0);
    classes.level_wear(0, 0, &mut out);
    assert!(out.is_empty(), "the cold class lags behind itself: {out:?}");
    classes.members[0].map.blocks.compare_with(0, most + 100);
    classes.level_wear(0, 0, &mut out);
    let moved = erased(&classes, &out);
    assert!(!moved.is_empty(), "nothing was moved");
    assert!(moved.iter().all(|block| classes.holders[*block as usize].class == 1), "{moved:?}");
}

/// A block brings its wear along. Laggards are counted down from the most worn block, which none of
/// their class may exceed.
#[test]
fn a_block_that_changes_places_is_the_most_worn_where_it_comes() {
    let blocks = |count: u32, life: u32| {
        let searches = Searches { window: 0, wear: WearLevelling::Static };
        Blocks::with_lives(1, count, 4, searches, vec![life; count as usize])
    };
    let worn = || {
        let mut worn = blocks(1, 100);
        for _ in 0..5 {
            let block = worn.open(0).unwrap();
            worn.erased(block);
        }
        worn
    };
    let (mut from, mut to) = (worn(), blocks(2, 100));
    from.trade_free(&mut to, 0).unwrap();
    assert_eq!((from.erases_most(0), to.erases_most(0)), (5, 5));
    let (mut from, mut to) = (worn(), blocks(2, 100));
    to.trade_free(&mut from, 0).unwrap();
    assert_eq!((from.erases_most(0), to.erases_most(0)), (5, 5));
    // Bad from the start: a place for the given one.
    let (mut from, mut to) = (worn(), blocks(2, 0));
    from.give_free(&mut to, 0).unwrap();
    assert_eq!((from.erases_most(0), to.erases_most(0)), (5, 5));
}

/// What was begun has the fewest pages left to move. Another victim would be moved whole, and the one
/// that was begun after it.
#[test]
fn a_class_ends_its_cleaning_before_it_gives_a_block_away() {
    let mut classes = filled(r#","page.cleaning_pace":"paced""#);
    let pages = classes.sharing.pages(0);
    let mut out = Vec::new();
    // The hot class: its reserve is two blocks, of which one is left while a victim is emptied.
    for write in 0..10_000 {
        let map = &mut classes.members[0].map;
        let begun = map.begun[0].victim;
        // Half of the blocks moved: the class has neither none nor all of its blocks left.
        if begun != NONE
            && map.blocks.free_count(0) < 2
            && (1..6).contains(&map.blocks.valid(begun))
        {
            let left = map.blocks.valid(begun) as usize;
            out.clear();
            clean_to_give(map, 0, &mut out);
            assert_eq!(map.begun[0].victim, NONE);
            assert!(map.blocks.free_count(0) >= 2);
            let erase = out.iter().position(|op| op.kind == OpKind::Erase).unwrap();
            assert_eq!(map.geometry.block_of_page(out[erase].page), begun);
            let copies = out[..erase].iter().filter(|op| op.kind == OpKind::Copy);
            assert_eq!(copies.count(), left, "after {write} writes");
            return;
        }
        classes.write(write * 7919 % pages, Plane::Preferred(0), &mut out).unwrap();
    }
    panic!("no cleaning was under way where a block was missing");
}
