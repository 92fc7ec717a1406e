//! The table of `docs/claims.md`, and whether runs agree with it.

use std::collections::BTreeMap;

use ssdyno_papers::{Claim, ClaimState, KeepGoing, PapersOptions, PapersReport, run};

pub(crate) fn rerun(selector: &str, options: &PapersOptions) -> PapersReport {
    run(selector, options, &mut |_| KeepGoing::Continue).unwrap_or_else(|error| panic!("{error}"))
}

/// What the document says of a claim.
pub(crate) struct Documented {
    /// `None`: what it needs was not run.
    pub(crate) state: Option<ClaimState>,
    /// What decides it, with the names of the values in `assumptions.toml`.
    pub(crate) why: String,
}

/// Every claim that is in the table, by its identifier; the others hold.
pub(crate) fn documented() -> BTreeMap<String, Documented> {
    let text = include_str!("../../../../../docs/claims.md");
    let mut table = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("/claims/") && line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, state, why] = cells[..] else { panic!("not three cells: {line}") };
        let state = match state {
            "holds" => Some(ClaimState::Holds),
            "does not hold" => Some(ClaimState::DoesNotHold),
            "undecided" => Some(ClaimState::Undecided),
            "assumed" => Some(ClaimState::Assumed),
            "not run" => None,
            other => panic!("`{other}` is not a state: {line}"),
        };
        let documented = Documented { state, why: why.to_owned() };
        let before = table.insert(id.trim_matches('`').to_owned(), documented);
        assert!(before.is_none(), "twice in docs/claims.md: {id}");
    }
    table
}

/// What is wrong with the document about `claim`.
fn disagreement(claim: &Claim, table: &BTreeMap<String, Documented>) -> Option<String> {
    let row = table.get(&claim.id);
    // Where nothing was varied, all that may depend on a value are undecided.
    if claim.evidence.ends_with("assumed values were not varied") {
        let state = claim.state;
        return (state != Some(ClaimState::Undecided)).then(|| format!("{}: {state:?}", claim.id));
    }
    let state = row.map_or(Some(ClaimState::Holds), |row| row.state);
    if claim.state != state {
        return Some(format!("{}: {:?}, not {state:?}: {claim:?}", claim.id, claim.state));
    }
    // What a claim follows from is named, and nothing else is.
    let why = row.map_or("", |row| row.why.as_str());
    let wrong = claim
        .assumptions
        .iter()
        .find(|value| value.decides != why.contains(&format!("*{}*", value.name)))?;
    let state =
        if wrong.decides { "decides, and is not named" } else { "is named, and does not decide" };
    Some(format!("{}: {} {state}: {}", claim.id, wrong.name, wrong.ranges()))
}

/// That the document says of each claim of `report` what the runs do.
pub(crate) fn assert_as_documented(report: &PapersReport) {
    let table = documented();
    let wrong: Vec<String> =
        report.claims.iter().filter_map(|claim| disagreement(claim, &table)).collect();
    assert!(wrong.is_empty(), "docs/claims.md:\n{}", wrong.join("\n"));
    for claim in &report.claims {
        assert_eq!(claim.holds, claim.state.and_then(ClaimState::decided), "{}", claim.id);
    }
    assert!(report.mismatches().next().is_none());
}

/// The values that decide a claim of `report`, for which all were varied, although `assumptions`, the paper's
/// `assumptions.toml`, does not name them for it.
#[allow(dead_code, reason = "not every file of tests varies all values")]
pub(crate) fn unlisted(report: &PapersReport, assumptions: &str) -> Vec<String> {
    let table: toml::Table = toml::from_str(assumptions).unwrap();
    let all = table["values"].as_array().unwrap();
    let listed = |value: &str, claim: &str| {
        let own = all.iter().find(|own| own["name"].as_str() == Some(value)).unwrap();
        let mut claims = own["claims"].as_array().unwrap().iter();
        claims.any(|one| claim.rsplit('/').next() == one.as_str())
    };
    let mut wrong = Vec::new();
    for claim in &report.claims {
        println!("{}: {:?}, {} values", claim.id, claim.state, claim.assumptions.len());
        for value in claim.assumptions.iter().filter(|value| value.decides) {
            println!("    {}: {}", value.name, value.ranges());
            if !listed(&value.name, &claim.id) {
                wrong.push(format!("{}: {}: {}", claim.id, value.name, value.ranges()));
            }
        }
        // Claims about printed numbers alone have no runs, and depend on no value.
        let varied = claim.assumptions.len();
        assert!(varied == all.len() || varied == 0, "{}: {varied} values", claim.id);
    }
    wrong
}

/// The identifiers of the claims of `paper` whose names are meant.
#[allow(dead_code, reason = "not every file of tests varies all values")]
fn claims_of(paper: &str, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let prefix = format!("{paper}/claims/");
    let all = ssdyno_papers::selectable().unwrap().into_iter().map(|(id, _)| id);
    let claims: Vec<String> =
        all.filter(|id| id.strip_prefix(&prefix).is_some_and(&is_meant)).collect();
    assert!(!claims.is_empty());
    claims
}

/// That the lists of claims in `assumptions` are complete for the claims of `paper` that are meant: none has
/// another answer with a value elsewhere in its range that is not listed for it.
#[allow(dead_code, reason = "not every file of tests varies all values")]
pub(crate) fn assert_lists_are_complete(
    paper: &str,
    assumptions: &str,
    options: &PapersOptions,
    is_meant: impl Fn(&str) -> bool,
) {
    let mut wrong = Vec::new();
    // Claim after claim: each has points of its own.
    for claim in claims_of(paper, is_meant) {
        wrong.extend(unlisted(&rerun(&claim, options), assumptions));
    }
    assert!(wrong.is_empty(), "not in assumptions.toml:\n{}", wrong.join("\n"));
}
