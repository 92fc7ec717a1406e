//! Numbers that a paper prints in its text: worked out again by a formula of their name, or quoted.

use serde::Deserialize;
use ssdyno_session::Failure;

use crate::error::defect;
use crate::{FigureCell, Selector};

/// A row `[[cells]]` of `printed.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrintedNumber {
    /// Its name, with the unit last; that of its formula, too.
    pub(crate) name: String,
    /// Digit by digit.
    pub(crate) printed: String,
    /// The requirement line.
    pub(crate) requirement: String,
    /// Largest relative error that counts as a match.
    #[serde(default = "tolerance")]
    pub(crate) tolerance: f64,
    /// False: the paper's number is a bound, or cannot be right.
    #[serde(default = "yes")]
    pub(crate) matches: bool,
    /// True: what others are worked out from, or about somebody else's machine: nothing of ours stands
    /// beside it.
    #[serde(default)]
    pub(crate) quoted: bool,
    /// What a reader must know; empty where nothing. The terminal shows what `; ` separates as notes
    /// of their own.
    #[serde(default)]
    pub(crate) note: String,
}

fn tolerance() -> f64 {
    0.01
}

fn yes() -> bool {
    true
}

impl PrintedNumber {
    fn cell(&self, id: String, printed: f64, ours: Option<f64>) -> FigureCell {
        let note = match self.note.is_empty() {
            true => self.requirement.clone(),
            false => format!("{}: {}", self.requirement, self.note),
        };
        FigureCell {
            id,
            printed: Some(printed),
            printed_text: self.printed.clone(),
            as_printed_model: None,
            ours,
            // A printed zero has no relative error. An infinite one would be the largest of the
            // table and no number in JSON.
            relative_error: ours.filter(|_| printed != 0.0).map(|ours| (ours - printed) / printed),
            tolerance: self.tolerance,
            // A number that the paper cannot have right (E) is shown with its note and is not
            // expected to match. The same holds for quotations, which have no figure of ours.
            expected_to_match: self.matches && ours.is_some(),
            note,
        }
    }
}

/// The number called `name` in `numbers`, for formulas that others are worked out from.
pub(crate) fn quoted(numbers: &[PrintedNumber], name: &str) -> Option<f64> {
    numbers.iter().find(|number| number.name == name)?.printed.parse().ok()
}

/// A figure or a table that can be selected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Titled {
    pub(crate) id: String,
    pub(crate) title: String,
}

impl Titled {
    /// Its identifier as a part of `paper`, and its title.
    pub(crate) fn of(&self, paper: &str) -> (String, String) {
        (format!("{paper}/{}", self.id), self.title.clone())
    }
}

/// The selected numbers of `paper` as cells `<paper>/arithmetic/<name>`. `formula` gives ours by name;
/// `None` where there is no such formula. One that is quoted needs none.
///
/// # Errors
/// A row without formula, or that prints no number, names `printed.toml`; an error of a formula.
pub(crate) fn arithmetic(
    paper: &str,
    numbers: &[PrintedNumber],
    selector: &Selector,
    formula: impl Fn(&str) -> Result<Option<f64>, Failure>,
) -> Result<Vec<FigureCell>, Failure> {
    let mut cells = Vec::new();
    for number in numbers {
        let name = &number.name;
        let id = format!("{paper}/arithmetic/{name}");
        if !selector.selects(&id) {
            continue;
        }
        let file = format!("papers/{}/printed.toml", paper.to_lowercase());
        let wrong = |problem: String| defect(&file, problem);
        let printed = number.printed.parse();
        let printed: f64 =
            printed.map_err(|_| wrong(format!("{name} prints no number: {}", number.printed)))?;
        let ours = formula(name)?;
        // The data file and the formulas check each other. A misspelt name would otherwise leave a
        // printed number without any comparison, and nobody would notice.
        if ours.is_none() != number.quoted {
            let problem =
                if number.quoted { "is quoted, with a formula" } else { "has no formula" };
            return Err(wrong(format!("{name} {problem}")));
        }
        cells.push(number.cell(id, printed, ours));
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str, printed: &str) -> PrintedNumber {
        let text = format!("name = '{name}'\nprinted = '{printed}'\nrequirement = 'S0-1'");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_number_becomes_a_cell() {
        let numbers = [number("a", "2.0"), number("b", "0"), number("c", "1e3")];
        let formula = |name: &str| Ok(Some(if name == "a" { 2.01 } else { 5.0 }));
        let selected =
            |what: &str| arithmetic("S0", &numbers, &what.parse().unwrap(), formula).unwrap();
        let cells = selected("S0");
        let ids: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids, ["S0/arithmetic/a", "S0/arithmetic/b", "S0/arithmetic/c"]);
        assert!(cells[0].matches() && cells[0].printed_text == "2.0" && cells[0].note == "S0-1");
        assert_eq!(cells[1].relative_error, None, "nothing is a share of zero");
        assert_eq!(cells[2].relative_error, Some(-0.995));
        assert_eq!(selected("S0/arithmetic/b").len(), 1);
    }

    #[test]
    fn a_quoted_number_stands_alone() {
        let mut numbers = [number("a", "866")];
        numbers[0].quoted = true;
        let all = "S4".parse().unwrap();
        let cells = arithmetic("S4", &numbers, &all, |_| Ok(None)).unwrap();
        assert_eq!(
            (cells[0].printed, cells[0].ours, cells[0].relative_error),
            (Some(866.0), None, None)
        );
        assert!(!cells[0].expected_to_match);
        assert_eq!((quoted(&numbers, "a"), quoted(&numbers, "b")), (Some(866.0), None));
        let refused = arithmetic("S4", &numbers, &all, |_| Ok(Some(1.0))).unwrap_err().to_string();
        assert!(refused.contains("a is quoted, with a formula"), "{refused}");
    }

    #[test]
    fn broken_rows_name_the_file() {
        let all = "S4".parse().unwrap();
        for (printed, formula, words) in
            [("many", Some(1.0), "x prints no number: many"), ("1", None, "x has no formula")]
        {
            let refused = arithmetic("S4", &[number("x", printed)], &all, |_| Ok(formula));
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(words) && text.contains("papers/s4/printed.toml"), "{text}");
        }
    }
}
