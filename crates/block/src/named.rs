//! Enums whose values have names.

/// An enum, the list `ALL` of its values, and what each is called in results, options and reports: the value of the method
/// that stands behind the colon.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident: $name:ident {
            $($(#[$doc:meta])* $value:ident = $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        $vis enum $enum {
            $($(#[$doc])* $value,)*
        }

        impl $enum {
            /// Every value, in order.
            $vis const ALL: [$enum; [$($text),*].len()] = [$($enum::$value),*];

            /// Its name in results, options and reports.
            $vis const fn $name(self) -> &'static str {
                match self {
                    $($enum::$value => $text,)*
                }
            }

            /// The value that is called `text`.
            $vis fn named(text: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|value| value.$name() == text)
            }
        }
    };
}
