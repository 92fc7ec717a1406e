//! Options whose values are words: what they are, and what each means, comes from the type that they make.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ssdyno_session::reference::schema_of;

/// A parser of the words that `T` is written as.
pub(crate) fn words<T>() -> impl TypedValueParser<Value = T>
where
    T: JsonSchema + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let schema = schema_of::<T>();
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let values: Vec<PossibleValue> = choices.filter_map(value).collect();
    PossibleValuesParser::new(values).try_map(read_word)
}

/// What `word` stands for.
pub(crate) fn read_word<T: DeserializeOwned>(word: String) -> serde_json::Result<T> {
    serde_json::from_value(Value::String(word))
}

/// A word and its meaning.
fn value(choice: &Value) -> Option<PossibleValue> {
    // clap wants names that live as long as the program; there are some dozen, made as it starts.
    let word: &'static str = choice["const"].as_str()?.to_owned().leak();
    let meaning = choice["description"].as_str().unwrap_or_default().replace('\n', " ");
    Some(PossibleValue::new(word).help(without_reference(&meaning).to_owned()))
}

/// Without the full stop, and without the number of the requirement behind it.
fn without_reference(text: &str) -> &str {
    let text = text.trim_end_matches('.');
    match text.rsplit_once(" (") {
        Some((before, reference)) if is_reference(reference) => before,
        _ => text,
    }
}

/// `S1-64)`, `X-9)`.
fn is_reference(text: &str) -> bool {
    let number = text.strip_suffix(')').and_then(|text| text.split_once('-'));
    number.is_some_and(|(paper, number)| {
        paper.starts_with(['S', 'X']) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use ssdyno_session::Queues;

    use super::*;

    #[test]
    fn words_and_meanings_are_those_of_the_type() {
        let parser = words::<Queues>();
        let values: Vec<PossibleValue> = parser.possible_values().into_iter().flatten().collect();
        assert_eq!(values.len(), 7);
        assert_eq!(values[2].get_name(), "per-core");
        assert_eq!(
            values[2].get_help().map(ToString::to_string).as_deref(),
            Some("One queue for each core")
        );
    }

    #[test]
    fn numbers_of_requirements_are_left_out() {
        assert_eq!(without_reference("Waits for all of it (S1-64)."), "Waits for all of it");
        assert_eq!(without_reference("128 at most (MFI)."), "128 at most (MFI)");
    }
}
