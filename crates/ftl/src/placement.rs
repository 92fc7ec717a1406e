//! Which plane a logical page goes to.

use ssdyno_block::ConfigError;
use ssdyno_flash::{Divisor, FlashConfig, Geometry};

use crate::{FtlConfig, Placement, Plane};

/// Chooses planes.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    placement: Placement,
    planes: Divisor,
    planes_per_package: u32,
    /// Plane of each logical page modulo the number of planes.
    table: Vec<u32>,
    /// Counts the choices for pages of the host.
    next: u32,
    /// Counts those for pages of a mapping table. They have a count of their own: where each write of
    /// the host comes with one of the table, a common count would give each half of the planes.
    next_of_table: u32,
}

impl Chooser {
    pub(crate) fn new(
        config: &FtlConfig,
        flash: &FlashConfig,
        geometry: &Geometry,
    ) -> Result<Chooser, ConfigError> {
        let joined = flash.dies_per_chip / geometry.dies_per_chip;
        Ok(Chooser {
            placement: config.placement,
            planes: Divisor::new(geometry.planes()),
            planes_per_package: geometry.dies_per_chip * geometry.planes_per_die,
            table: static_table(&config.static_order, geometry, joined)?,
            next: 0,
            next_of_table: 0,
        })
    }

    /// The same for logical pages that are counted from `first` on.
    pub(crate) fn counted_from(&self, first: u32) -> Chooser {
        let mut chooser = self.clone();
        let by = self.planes.remainder(first) as usize;
        chooser.table.rotate_left(by);
        chooser
    }

    /// A chooser for a device of one plane.
    pub(crate) fn single() -> Chooser {
        Chooser {
            placement: Placement::Static,
            planes: Divisor::new(1),
            planes_per_package: 1,
            table: vec![0],
            next: 0,
            next_of_table: 0,
        }
    }

    /// The plane that `page` belongs to in the static order.
    #[inline]
    pub(crate) fn home(&self, page: u32) -> u32 {
        self.table[self.planes.remainder(page) as usize]
    }

    /// Under static placement: for each plane the remainder of its logical pages when divided by
    /// the number of planes.
    pub(crate) fn residues(&self) -> Option<Vec<u32>> {
        if self.placement != Placement::Static {
            return None;
        }
        let mut residues = vec![0; self.table.len()];
        for (residue, plane) in self.table.iter().enumerate() {
            residues[*plane as usize] = residue as u32;
        }
        Some(residues)
    }

    /// As [`choose`](Chooser::choose) for `page` of a mapping table.
    pub(crate) fn choose_for_table(&mut self, page: u32, room: impl Fn(u32) -> u32) -> u32 {
        std::mem::swap(&mut self.next, &mut self.next_of_table);
        let plane = self.choose(page, Plane::Any, room);
        std::mem::swap(&mut self.next, &mut self.next_of_table);
        plane
    }

    /// The plane for a write of `page`; `room` gives the pages that fit into a plane, 0 = none.
    pub(crate) fn choose(&mut self, page: u32, plane: Plane, room: impl Fn(u32) -> u32) -> u32 {
        let wish = match (self.placement, plane) {
            // Static placement does not look at the room. Each plane holds only its own pages,
            // and the limits guarantee that all of them fit.
            (Placement::Static, _) => return self.home(page),
            (Placement::MostFree, _) => {
                let first = self.home(page) / self.planes_per_package * self.planes_per_package;
                // In turn where equal, so that an idle package fills evenly.
                let turn = self.next;
                self.next = self.next.wrapping_add(1);
                let n = self.planes_per_package;
                let planes = (0..n).map(|i| first + (turn + i) % n);
                // `max_by_key` takes the last of equals; reversed, the first in turn.
                planes.rev().max_by_key(|plane| room(*plane)).unwrap_or(first)
            }
            (Placement::LeastBusy, Plane::Preferred(plane)) => plane,
            (Placement::RoundRobin | Placement::LeastBusy, _) => {
                self.next = (self.next + 1) % self.planes.get();
                self.table[self.next as usize]
            }
        };
        // Placements without a fixed plane can fill one plane by chance. A plane beyond its
        // limit has no block that cleaning gains from, so the page goes to the plane with the
        // most room.
        if room(wish) > 0 {
            return wish;
        }
        (0..self.planes.get()).max_by_key(|plane| room(*plane)).unwrap_or(wish)
    }
}

/// The plane of each logical page modulo the number of planes, for an order such as `CWDP`.
fn static_table(order: &str, geometry: &Geometry, joined: u32) -> Result<Vec<u32>, ConfigError> {
    let mut letters: Vec<char> = order.chars().collect();
    letters.sort_unstable();
    if letters != ['C', 'D', 'P', 'W'] {
        return Err(ConfigError::new(
            "ftl.static_order",
            format!("`{order}` is not an order of C, W, D and P"),
            "use each letter once, the one that advances fastest first: \"CWDP\"",
        ));
    }
    let dies = geometry.dies_per_chip * joined;
    let planes = geometry.planes_per_die / joined;
    let size = |letter| match letter {
        'C' => geometry.channels,
        'W' => geometry.chips_per_channel,
        'D' => dies,
        _ => planes,
    };
    let mut table = Vec::with_capacity(geometry.planes() as usize);
    for page in 0..geometry.planes() {
        let mut rest = page;
        let (mut channel, mut way, mut die, mut plane) = (0, 0, 0, 0);
        // The page number is written in mixed radix. The first letter is the digit that changes
        // fastest, so neighbouring pages differ in it and can be served at the same time.
        for letter in order.chars() {
            let digit = rest % size(letter);
            rest /= size(letter);
            match letter {
                'C' => channel = digit,
                'W' => way = digit,
                'D' => die = digit,
                _ => plane = digit,
            }
        }
        let chip = channel * geometry.chips_per_channel + way;
        table.push((chip * dies + die) * planes + plane);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_reaches_every_plane_once() {
        let geometry = Geometry {
            channels: 3,
            chips_per_channel: 2,
            dies_per_chip: 2,
            planes_per_die: 4,
            blocks_per_plane: 1,
            pages_per_block: Divisor::new(1),
            page_bytes: 512,
        };
        for order in ["CWDP", "PDWC", "WCPD"] {
            let mut table = static_table(order, &geometry, 1).unwrap();
            if order == "CWDP" {
                assert_eq!(table[..4], [0, 16, 32, 8], "channel first, then way");
            }
            table.sort_unstable();
            assert_eq!(table, (0..48).collect::<Vec<_>>(), "{order}");
        }
        assert!(static_table("CWD", &geometry, 1).is_err());
        assert!(static_table("CCDP", &geometry, 1).is_err());
    }
}
