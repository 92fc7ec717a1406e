//! Groups of figures that are known or missing together.
//!
//! One definition of a group gives its structure, its schema, its names in OpenMetrics, and how two of them are
//! joined. So a figure cannot be documented in one place and forgotten in another.

/// What is known of a figure beside its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FigureFacts {
    /// Its name in OpenMetrics.
    pub(crate) name: &'static str,
    /// Its unit, by which the name ends; empty for numbers of things.
    pub(crate) unit: &'static str,
    /// What it means.
    pub(crate) help: &'static str,
}

/// `N` figures over one stretch of time.
pub(crate) trait Figures<const N: usize>: Copy {
    /// In the order of [`values`](Figures::values).
    const FACTS: [FigureFacts; N];
    fn new(covered_ns: u64, values: [f64; N]) -> Self;
    fn values(&self) -> [f64; N];
    fn covered_ns(&self) -> u64;
}

/// How two groups become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Joining {
    /// The mean over the time that both cover: the integral is that of both together.
    Mean,
    /// The greater one of each figure.
    Maximum,
}

impl Joining {
    pub(crate) fn join<const N: usize, F: Figures<N>>(self, a: F, b: F) -> F {
        let (a_ns, b_ns) = (a.covered_ns(), b.covered_ns());
        // Each group has its own covered time: a source may be unreadable for a while, and its figures
        // must not be spread over time that it did not cover.
        let covered_ns = a_ns.saturating_add(b_ns);
        let (mut values, others) = (a.values(), b.values());
        for (value, other) in values.iter_mut().zip(others) {
            *value = match self {
                Joining::Maximum => value.max(other),
                // Equal values stay the same to the last bit. A sum of weighted halves would change a constant
                // by a rounding error each time points are joined.
                Joining::Mean if *value == other || covered_ns == 0 => *value,
                Joining::Mean => {
                    // This form needs one multiplication by a share between 0 and 1. The sum of two products
                    // divided by the total would lose digits for long times.
                    let share = b_ns as f64 / covered_ns as f64;
                    *value + (other - *value) * share
                }
            };
        }
        F::new(covered_ns, values)
    }
}

/// Defines a group. `"unit"` after a field is its unit in OpenMetrics, by which its name must end.
macro_rules! figures {
    (
        $(#[$meta:meta])*
        $name:ident[$count:literal], $prefix:literal {
            $(#[doc = $help:literal] $field:ident: $unit:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug, Default)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        pub struct $name {
            /// Time over which these figures are known, in ns: from the first reading of their source to the second.
            pub covered_ns: u64,
            $(#[doc = $help] pub $field: f64,)*
        }

        impl $crate::figures::Figures<$count> for $name {
            const FACTS: [$crate::figures::FigureFacts; $count] = [$($crate::figures::FigureFacts {
                name: concat!("ssdyno_", $prefix, stringify!($field)),
                unit: $unit,
                help: $help,
            }),*];
            fn new(covered_ns: u64, values: [f64; $count]) -> $name {
                let [$($field),*] = values;
                $name { covered_ns, $($field),* }
            }
            fn values(&self) -> [f64; $count] {
                [$(self.$field),*]
            }
            fn covered_ns(&self) -> u64 {
                self.covered_ns
            }
        }
    };
}
pub(crate) use figures;
