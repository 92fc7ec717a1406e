//! JSON without silent nulls: every figure is checked to be finite before it is written.

use ciborium::Value;
use serde::Serialize;

use crate::error::ResultError;

/// Serialises as one pretty JSON object, ending with a newline.
///
/// # Errors
/// [`ResultError::NotFinite`] names the first figure that is NaN or infinite, which JSON
/// libraries would silently turn into `null`.
pub fn to_json<T: Serialize>(value: &T) -> Result<String, ResultError> {
    check_finite(value)?;
    let mut text =
        serde_json::to_string_pretty(value).map_err(|e| ResultError::Json(e.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// Looks for a figure that is not finite. Goes by way of CBOR values, which (unlike JSON's) can
/// hold one.
fn check_finite<T: Serialize>(value: &T) -> Result<(), ResultError> {
    let tree = Value::serialized(value).map_err(|e| ResultError::Json(e.to_string()))?;
    visit(&tree, &mut String::new())
}

fn visit(value: &Value, path: &mut String) -> Result<(), ResultError> {
    let below = |key: &str, value: &Value, path: &mut String| {
        let length = path.len();
        path.push_str(key);
        let found = visit(value, path);
        path.truncate(length);
        found
    };
    match value {
        Value::Float(f) if !f.is_finite() => {
            Err(ResultError::NotFinite { figure: path.clone(), value: *f })
        }
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(i, v)| below(&format!("[{i}]"), v, path))
        }
        Value::Map(entries) => entries.iter().try_for_each(|(key, v)| {
            let dot = if path.is_empty() { "" } else { "." };
            below(&format!("{dot}{}", key.as_text().unwrap_or("?")), v, path)
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use ssdyno_figures::{Latency, LatencyByOp, RunResult, SeriesPoint};

    use super::*;

    #[test]
    fn names_the_figure() {
        let mut result =
            RunResult { series: vec![SeriesPoint::default(); 2], ..Default::default() };
        assert!(to_json(&result).is_ok());
        result.series[1].latency_ns_mean = Some(f64::NAN);
        let error = to_json(&result).unwrap_err().to_string();
        assert!(error.contains("`series[1].latency_ns_mean` is NaN"), "{error}");
        let all = Latency { p99: f64::INFINITY, ..Default::default() };
        result = RunResult {
            latency_ns: Some(LatencyByOp { all, ..Default::default() }),
            ..Default::default()
        };
        let error = to_json(&result).unwrap_err().to_string();
        assert!(error.contains("`latency_ns.p99` is inf"), "{error}");
    }
}
