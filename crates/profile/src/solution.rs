//! Names of solutions: several capacities of one device, of which systemd applies one.
//!
//! `iocost.c` of systemd looks for the model of the solution `a-b` under the key `IOCOST_MODEL_A_B`. Names that differ in
//! case, or in `-` and `_`, give the same key.

use ssdyno_session::Failure;

use crate::error::refused;

/// The solution of a profile without a name.
pub(crate) const UNNAMED: &str = "ssdyno";

/// The suffixes of the keys of a solution in systemd's hardware database.
pub(crate) fn key(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

/// Refuses a name that the hardware database cannot have: blanks separate names there, and `=` ends a key.
pub(crate) fn check(name: &str) -> Result<(), Failure> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.bytes().all(is_known) {
        return Ok(());
    }
    let help = "use letters (a to z), digits, - and _, such as isolated-bandwidth";
    Err(refused(format!("`solution` {name:?} is not a valid name"), help))
}

/// Refuses names that are not valid, and two that give the same key.
pub(crate) fn check_all(names: &[&str]) -> Result<(), Failure> {
    for (at, name) in names.iter().enumerate() {
        check(name)?;
        if let Some(before) = names[..at].iter().find(|before| key(before) == key(name)) {
            let what = format!(
                "the solutions {before} and {name} have the same key IOCOST_MODEL_{}",
                key(name)
            );
            let help = "use names that differ in more than case, - and _";
            return Err(refused(what, help));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_systemd() {
        assert_eq!(key("isolated-bandwidth"), "ISOLATED_BANDWIDTH");
        assert_eq!(key("naive"), "NAIVE");
        assert_eq!(key("p99_v2"), "P99_V2");
    }

    #[test]
    fn names_that_the_database_cannot_have_are_refused() {
        check_all(&["isolation", "isolated-bandwidth", "naive", UNNAMED, "2"]).unwrap();
        for name in ["", " ", "a b", "a=b", "a\tb", "a\nb", "\u{fc}", "a:b", "#a"] {
            let error = check(name).unwrap_err();
            assert!(error.to_string().ends_with("is not a valid name"), "{error}");
            assert!(error.help.unwrap().contains("isolated-bandwidth"));
        }
        for (one, other) in [("a-b", "a_b"), ("Naive", "naive"), ("a", "a")] {
            let error = check_all(&["x", one, other]).unwrap_err().to_string();
            assert!(error.contains(&format!("{one} and {other} have the same key")), "{error}");
        }
        assert!(check_all(&["a", "b c"]).is_err());
    }
}
