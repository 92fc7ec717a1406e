//! Text: pairs of key and value (RFC 7143, clause 6.1).

/// Most bytes of text that are put together from PDUs with bit C.
pub(crate) const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The pairs of `data`; `None` where it is no such text.
pub(crate) fn pairs(data: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut pairs = Vec::new();
    for item in data.split(|byte| *byte == 0).filter(|item| !item.is_empty()) {
        let (key, value) = std::str::from_utf8(item).ok()?.split_once('=')?;
        let named = !key.is_empty() && key.len() <= 63;
        pairs.push(named.then_some((key, value))?);
    }
    Some(pairs)
}

/// Appends a pair.
pub(crate) fn push(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// A number: decimal or hexadecimal (RFC 7143, clause 6.1).
pub(crate) fn number(value: &str) -> Option<u32> {
    match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_split() {
        let pairs = pairs(b"A=1\0\0Key=b=c\0Last=");
        assert_eq!(pairs, Some(vec![("A", "1"), ("Key", "b=c"), ("Last", "")]));
        assert_eq!(super::pairs(b"novalue\0"), None);
        assert_eq!(super::pairs(b"=x\0"), None);
        assert_eq!(
            (number("0x1F"), number("12"), number("-1"), number("")),
            (Some(31), Some(12), None, None)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_text_or_not(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let again = |pairs: &[(&str, &str)]| {
                let mut out = Vec::new();
                pairs.iter().for_each(|(key, value)| push(&mut out, key, value));
                out
            };
            if let Some(found) = pairs(&bytes) {
                let bytes = again(&found);
                prop_assert_eq!(pairs(&bytes), Some(found));
            }
        }
    }
}
