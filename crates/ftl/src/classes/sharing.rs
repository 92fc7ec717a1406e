//! The distribution of the logical space, and of the blocks of a plane, among classes.

use ssdyno_block::ConfigError;
use ssdyno_flash::Geometry;

use crate::closed_forms::{self, Class};
use crate::own_keys::PageClass;
use crate::{Cleaning, FtlConfig, HotCold};

/// Fewest and most classes.
const COUNT: std::ops::RangeInclusive<usize> = 2..=8;

/// The blocks that a class needs and gets in every plane.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Part {
    /// Blocks kept free: its cleaning goes on while fewer are.
    reserve: u32,
    /// Fewest blocks with which its cleaning always gains something, the reserve included.
    least: u32,
    /// Blocks that its data fill.
    filled: f64,
    /// Its share of the spare blocks.
    spare: f64,
}

/// How logical pages and blocks are shared out among the classes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Sharing {
    /// First logical page of each class, and the end of the last.
    bounds: Vec<u32>,
    data_pages: u32,
    parts: Vec<Part>,
}

/// That `classes` are given where they are used, only there, and that their shares are sound.
pub(crate) fn check(config: &FtlConfig) -> Result<(), ConfigError> {
    let classes = &config.page.classes;
    let fail =
        |problem: String, help: &str| Err(ConfigError::new("ftl.page.classes", problem, help));
    if config.hot_cold != HotCold::Classes {
        if classes.is_empty() {
            return Ok(());
        }
        let help = "set ftl.hot_cold = \"classes\", or leave them out (ftl.page.classes = [])";
        return fail("classes change nothing unless ftl.hot_cold is \"classes\"".into(), help);
    }
    if !COUNT.contains(&classes.len()) {
        return fail(
            format!("{} entries, for ftl.hot_cold = \"classes\"", classes.len()),
            "use two to eight, such as --set 'ftl.page.classes=[{ space = 0.2, writes = 0.8 }, { space = 0.8, writes = 0.2 }]'",
        );
    }
    let given = |share: fn(&PageClass) -> Option<f64>| {
        let shares: Vec<Option<f64>> = classes.iter().map(share).collect();
        let known: Vec<f64> = shares.iter().copied().flatten().collect();
        (known.len() == shares.len(), known)
    };
    for (key, (in_all, shares)) in [
        ("space", given(|class| Some(class.space))),
        ("writes", given(|class| class.writes)),
        ("spare", given(|class| class.spare)),
    ] {
        if shares.is_empty() {
            continue;
        }
        if !in_all {
            let problem = format!("`{key}` is in {} of {} classes", shares.len(), classes.len());
            return fail(problem, "set it in every class, or in none");
        }
        // A class without writes or spare blocks is kept; a class without space is omitted.
        let least_wrong = |share: &&f64| !(**share <= 1.0 && **share >= 0.0);
        let none = |share: &&f64| key == "space" && **share == 0.0;
        if let Some(share) = shares.iter().find(|share| least_wrong(share) || none(share)) {
            return fail(
                format!("`{key}` = {share} is not a share"),
                "use a value above 0 and below 1",
            );
        }
        let sum: f64 = shares.iter().sum();
        if (sum - 1.0).abs() > 1e-6 {
            // Without what rounding leaves, such as 0.8999999999999999.
            let sum = (sum * 1e9).round() / 1e9;
            let problem = format!("`{key}` of all classes adds up to {sum}");
            return fail(problem, "use shares that add up to 1");
        }
    }
    if classes.iter().all(|class| class.writes.is_none() && class.spare.is_none()) {
        return fail(
            "the shares of the spare blocks are missing".into(),
            "set in every class its share of the `writes` or its share of the `spare` blocks",
        );
    }
    Ok(())
}

impl Sharing {
    /// From the `[ftl]` table, for planes with `bad` bad blocks: the fewest and the most in a plane.
    pub(crate) fn new(
        config: &FtlConfig,
        geometry: &Geometry,
        bad: (u32, u32),
    ) -> Result<Sharing, ConfigError> {
        config.check_shares(geometry)?;
        let logical_pages = config.logical_pages(geometry)?;
        let good_least = geometry.blocks_per_plane - bad.1;
        let needs = |pages| {
            let sharing = Sharing::unshared(config, geometry, pages)?;
            Some(sharing.parts.iter().map(|part| u64::from(part.least)).sum::<u64>())
        };
        let fits = |pages| needs(pages).is_some_and(|needed| needed <= u64::from(good_least));
        let Some(mut sharing) =
            Sharing::unshared(config, geometry, logical_pages).filter(|_| fits(logical_pages))
        else {
            let problem = format!(
                "{} is too small: {} classes need {} blocks of each plane, including a reserve and room to clean for each class, but only {good_least} are available",
                config.over_provisioning,
                config.page.classes.len(),
                needs(logical_pages).map_or("more".into(), |needed| needed.to_string()),
            );
            let or_else = "lower ftl.free_blocks_low, use fewer classes, ";
            return Err(config.cannot_hold(geometry, problem, or_else, fits));
        };
        sharing.share_spare(config, geometry.blocks_per_plane - bad.0);
        Ok(sharing)
    }

    /// The need of the classes for `logical_pages`, without the spare blocks; `None` where not even
    /// each class has a page.
    fn unshared(config: &FtlConfig, geometry: &Geometry, logical_pages: u32) -> Option<Sharing> {
        let bounds = bounds(&config.page.classes, logical_pages)?;
        let data_pages = geometry.pages_per_block.get() - config.summary_pages;
        let planes = geometry.planes();
        let parts = config.page.classes.iter().zip(bounds.windows(2)).map(|(class, ends)| {
            let pages = ends[1] - ends[0];
            // Two: one to open, one to move pages to while its successor is being made.
            let reserve = of_plane(config.free_blocks_low, class, geometry).max(2);
            // Beside it an open block, and more than the data fill: then something is gained.
            let full = pages.div_ceil(planes) / data_pages;
            Part {
                reserve,
                // `full` is rounded down and one block is added. The data then always leave part
                // of a block invalid, which is what cleaning gains from.
                least: reserve + 1 + full + 1,
                filled: f64::from(pages) / (f64::from(planes) * f64::from(data_pages)),
                spare: 0.0,
            }
        });
        Some(Sharing { parts: parts.collect(), bounds, data_pages })
    }

    /// Distributes the spare blocks in a plane of `good` blocks: as configured, or for the least
    /// write amplification.
    fn share_spare(&mut self, config: &FtlConfig, good: u32) {
        let given: Vec<f64> = config.page.classes.iter().filter_map(|class| class.spare).collect();
        let shares = if given.len() == self.parts.len() { given } else { self.best(config, good) };
        let sum: f64 = shares.iter().sum();
        for (part, share) in self.parts.iter_mut().zip(shares) {
            part.spare = share / sum;
        }
    }

    /// The best shares of the spare blocks in a plane of `good` blocks, up to a factor.
    fn best(&self, config: &FtlConfig, good: u32) -> Vec<f64> {
        let reserve: u32 = self.parts.iter().map(|part| part.reserve).sum();
        let filled: f64 = self.parts.iter().map(|part| part.filled).sum();
        let alpha = f64::from(good - reserve) / filled;
        let class = |(part, class): (&Part, &PageClass)| Class {
            writes: class.writes.unwrap_or(0.0),
            space: part.filled / filled,
        };
        let classes: Vec<Class> = self.parts.iter().zip(&config.page.classes).map(class).collect();
        let one = |alpha: f64| match config.cleaning {
            Cleaning::Greedy => closed_forms::greedy(1.0 / alpha, self.data_pages),
            Cleaning::Random => closed_forms::random_victim(1.0 / alpha),
            // Others come between these: as FIFO, and as greedy where blocks are large.
            _ => closed_forms::fifo(alpha),
        };
        // Form 3 does not reach to blocks of a few pages that are nearly full.
        let alphas = closed_forms::best_pools(&classes, alpha, one)
            .or_else(|| closed_forms::best_pools(&classes, alpha, closed_forms::fifo))
            .unwrap_or_else(|| vec![alpha; classes.len()]);
        self.parts.iter().zip(alphas).map(|(part, alpha)| part.filled * (alpha - 1.0)).collect()
    }

    /// How many classes there are.
    pub(crate) fn classes(&self) -> usize {
        self.parts.len()
    }

    /// First logical page of `class`.
    pub(crate) fn first(&self, class: usize) -> u32 {
        self.bounds[class]
    }

    /// Logical pages of `class`.
    pub(crate) fn pages(&self, class: usize) -> u32 {
        self.bounds[class + 1] - self.bounds[class]
    }

    /// Logical pages of all classes.
    pub(crate) fn logical_pages(&self) -> u32 {
        self.bounds[self.parts.len()]
    }

    /// The class of logical page `page`.
    #[inline]
    pub(crate) fn class_of(&self, page: u32) -> usize {
        let inner = &self.bounds[1..self.parts.len()];
        inner.iter().position(|bound| page < *bound).unwrap_or(inner.len())
    }

    /// Data pages of a block.
    pub(crate) fn data_pages(&self) -> u32 {
        self.data_pages
    }

    /// Blocks of a plane that `class` keeps free.
    pub(crate) fn reserve(&self, class: usize) -> u32 {
        self.parts[class].reserve
    }

    /// Fewest blocks of a plane with which `class` can be written.
    pub(crate) fn least(&self, class: usize) -> u32 {
        self.parts[class].least
    }

    /// The blocks of each class in a plane of `good` blocks, at least those of the worst plane.
    ///
    /// One block after another goes to the class that is furthest below its share, so that no class
    /// gets fewer where there are more.
    pub(crate) fn deal(&self, good: u32) -> Vec<u32> {
        // Each class first gets what it cannot do without. Only blocks beyond that follow the
        // shares, so an extreme `spare` cannot make a class unable to clean.
        let mut blocks: Vec<u32> = self.parts.iter().map(|part| part.least).collect();
        for _ in blocks.iter().sum::<u32>()..good {
            let next = |class: &usize| self.turn(*class, blocks[*class] + 1);
            // There is a class whose turn comes: shares of the spare blocks add up to 1.
            let class = (0..blocks.len()).min_by(|a, b| next(a).total_cmp(&next(b)));
            blocks[class.unwrap_or(0)] += 1;
        }
        blocks
    }

    /// A block less for `blocks`, those of each class in a plane; false if no class can spare one.
    pub(crate) fn shed(&self, blocks: &mut [u32]) -> bool {
        let last = |class: &usize| self.turn(*class, blocks[*class]);
        let gives = (0..blocks.len()).filter(|class| blocks[*class] > self.parts[*class].least);
        // Of equals the last was the last to get its block.
        let Some(class) = gives.max_by(|a, b| last(a).total_cmp(&last(b))) else { return false };
        blocks[class] -= 1;
        true
    }

    /// When `class` gets block number `blocks`: spare blocks of the plane at which its share comes to
    /// half a block less.
    fn turn(&self, class: usize, blocks: u32) -> f64 {
        let part = &self.parts[class];
        // Half a block is subtracted so that shares round to the nearest whole block and not
        // downwards. A class without a spare share never gets a turn before the others.
        let spare = f64::from(blocks - part.reserve) - part.filled - 0.5;
        if part.spare > 0.0 { spare / part.spare } else { f64::INFINITY }
    }
}

/// `share` of a plane's blocks, the part of `class`, rounded up.
pub(crate) fn of_plane(share: f64, class: &PageClass, geometry: &Geometry) -> u32 {
    // 0.05 of 400 blocks is 20 also where the product is a rounding error above.
    (share * class.space * f64::from(geometry.blocks_per_plane) - 1e-9).ceil() as u32
}

/// First page of each class, and the end of the last; `None` if there are fewer pages than classes.
fn bounds(classes: &[PageClass], pages: u32) -> Option<Vec<u32>> {
    let count = classes.len() as u32;
    if pages < count {
        return None;
    }
    let (mut bounds, mut space) = (vec![0], 0.0);
    for (number, class) in (1..count).zip(classes) {
        space += class.space;
        // The bounds are sums of shares, rounded once. Rounding each class by itself would let
        // the errors add up to several pages. The clamp leaves every class at least one page.
        let bound = (f64::from(pages) * space).round() as u32;
        bounds.push(bound.clamp(bounds[number as usize - 1] + 1, pages - (count - number)));
    }
    bounds.push(pages);
    Some(bounds)
}
