//! Circles in a directed graph: its strongly connected components (Tarjan 1972) and the shortest cycle
//! in one of them.

use std::collections::VecDeque;

/// For each node the nodes that its arrows point to.
pub(super) type Arrows = Vec<Vec<usize>>;

/// The sets of nodes each of which reaches all others of its set, those of more than one node; each in
/// the order of the nodes' numbers.
pub(super) fn circles(arrows: &Arrows) -> Vec<Vec<usize>> {
    let mut search = Search {
        arrows,
        next: 0,
        order: vec![None; arrows.len()],
        lowest: vec![0; arrows.len()],
        is_open: vec![false; arrows.len()],
        open: Vec::new(),
        found: Vec::new(),
    };
    for node in 0..arrows.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    search.found
}

/// The state of Tarjan's algorithm.
struct Search<'a> {
    arrows: &'a Arrows,
    next: usize,
    /// When a node was seen first.
    order: Vec<Option<usize>>,
    /// The earliest open node that a node reaches.
    lowest: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Goes as deep as a chain of files is long, which the stack bears.
    fn visit(&mut self, node: usize) {
        let order = self.next;
        self.next += 1;
        self.order[node] = Some(order);
        self.lowest[node] = order;
        self.open.push(node);
        self.is_open[node] = true;
        let arrows = self.arrows;
        for &to in &arrows[node] {
            match self.order[to] {
                None => {
                    self.visit(to);
                    self.lowest[node] = self.lowest[node].min(self.lowest[to]);
                }
                Some(seen) if self.is_open[to] => {
                    self.lowest[node] = self.lowest[node].min(seen);
                }
                Some(_) => {}
            }
        }
        if self.lowest[node] == order {
            let at = self.open.iter().position(|open| *open == node).unwrap_or(0);
            let mut circle = self.open.split_off(at);
            for member in &circle {
                self.is_open[*member] = false;
            }
            circle.sort_unstable();
            if circle.len() > 1 {
                self.found.push(circle);
            }
        }
    }
}

/// The nodes of a shortest cycle inside `circle`, in the order of its arrows; the last points to the first.
pub(super) fn shortest_cycle(arrows: &Arrows, circle: &[usize]) -> Vec<usize> {
    let cycles = circle.iter().filter_map(|start| cycle_through(arrows, circle, *start));
    cycles.min_by_key(Vec::len).unwrap_or_default()
}

/// A shortest cycle through `start`, by breadth-first search.
fn cycle_through(arrows: &Arrows, circle: &[usize], start: usize) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; arrows.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for &to in arrows[node].iter().filter(|to| circle.contains(to)) {
            if to == start {
                let mut cycle = vec![node];
                let mut at = node;
                while at != start {
                    at = before[at]?;
                    cycle.push(at);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if before[to].is_none() {
                before[to] = Some(node);
                queue.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether each node reaches each other, by the closure of the arrows: the definition itself.
    fn reached(arrows: &Arrows) -> Vec<Vec<bool>> {
        let n = arrows.len();
        let mut reach = vec![vec![false; n]; n];
        for (from, to) in
            arrows.iter().enumerate().flat_map(|(f, ts)| ts.iter().map(move |t| (f, *t)))
        {
            reach[from][to] = true;
        }
        for via in 0..n {
            for from in 0..n {
                for to in 0..n {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        reach
    }

    #[test]
    fn circles_are_those_of_the_definition_in_all_graphs_of_four_nodes() {
        let pairs: Vec<(usize, usize)> =
            (0..4).flat_map(|f| (0..4).map(move |t| (f, t))).filter(|(f, t)| f != t).collect();
        for bits in 0..1_usize << pairs.len() {
            let mut arrows: Arrows = vec![Vec::new(); 4];
            for (bit, (from, to)) in pairs.iter().enumerate() {
                if bits >> bit & 1 == 1 {
                    arrows[*from].push(*to);
                }
            }
            let reach = reached(&arrows);
            let mut wanted: Vec<Vec<usize>> = (0..4)
                .map(|a| (0..4).filter(|b| *b == a || reach[a][*b] && reach[*b][a]).collect())
                .filter(|circle: &Vec<usize>| circle.len() > 1)
                .collect();
            wanted.sort_unstable();
            wanted.dedup();
            let mut found = circles(&arrows);
            found.sort_unstable();
            assert_eq!(found, wanted, "{arrows:?}");
        }
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        // 0 -> 1 -> 2 -> 3 -> 0, and 2 -> 1.
        let arrows = vec![vec![1], vec![2], vec![3, 1], vec![0]];
        assert_eq!(circles(&arrows), [[0, 1, 2, 3]]);
        assert_eq!(shortest_cycle(&arrows, &[0, 1, 2, 3]), [1, 2]);
    }
}
