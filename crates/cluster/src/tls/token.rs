//! The secret that a worker needs to enrol, as one word that a person carries.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use ssdyno_session::Failure;
use subtle::ConstantTimeEq;

use super::pinned::Fingerprint;

const SCHEME: &str = "ssdyno-invitation://";

/// A random number that cannot be guessed: its holder may enrol. It is never printed but in its
/// token.
#[derive(Clone)]
pub(super) struct Secret([u8; 16]);

impl Secret {
    pub(super) fn random() -> Result<Secret, Failure> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            Failure::failed(format!("this system provides no random numbers: {error}"))
        })?;
        Ok(Secret(bytes))
    }

    /// In constant time: the duration does not depend on the secret.
    pub(super) fn is(&self, other: &[u8]) -> bool {
        self.0.ct_eq(other).into()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// An invitation of a controller: its address, its expiry, its fingerprint, and the secret for the worker.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) host: String,
    pub(super) port: u16,
    /// Seconds since 1970.
    pub(super) ends_unix_s: u64,
    /// Of the authority of the controller.
    pub(super) authority: Fingerprint,
    pub(super) secret: Secret,
}

impl Token {
    /// `HOST:PORT`.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The text, with its secret.
    pub(super) fn text(&self) -> String {
        let (authority, secret) = (hex(&self.authority), hex(self.secret.bytes()));
        format!("{SCHEME}{}/{}/{authority}/{secret}", self.place(), self.ends_unix_s)
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail. Two digits for each byte keep the length fixed, so
        // that a token that was cut off is recognised.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes of pairs of hexadecimal digits; `None` for other texts, and without any.
pub(super) fn unhex_any(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    // Only ASCII digits are accepted: `from_str_radix` also takes a plus sign, and
    // two texts for one secret would be a trap.
    if !is_hex || text.is_empty() || !text.len().is_multiple_of(2) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    unhex_any(text)?.try_into().ok()
}

fn parse(text: &str) -> Option<Token> {
    let parts: Vec<&str> = text.trim().strip_prefix(SCHEME)?.split('/').collect();
    let [place, ends, authority, secret] = parts.as_slice() else { return None };
    // The last colon separates the port, because an IPv6
    // address contains colons itself.
    let (host, port) = place.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    if host.is_empty() {
        return None;
    }
    Some(Token {
        host: host.to_owned(),
        port,
        ends_unix_s: ends.parse().ok()?,
        authority: unhex(authority)?,
        secret: Secret(unhex(secret)?),
    })
}

impl FromStr for Token {
    type Err = Failure;

    /// The error does not repeat the text: it may hold a secret.
    fn from_str(text: &str) -> Result<Token, Failure> {
        parse(text).ok_or_else(|| {
            Failure::usage("this is not a complete invitation token").with_help(format!(
                "give the whole text that the controller printed, beginning with `{SCHEME}`"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(host: &str, port: u16, ends_unix_s: u64) -> Token {
        let secret = Secret::random().unwrap();
        Token { host: host.to_owned(), port, ends_unix_s, authority: [0xa7; 32], secret }
    }

    proptest! {
        #[test]
        fn a_token_is_read_back(port in 1u16.., ends in any::<u64>(), v6 in any::<bool>()) {
            let token = token(if v6 { "[2001:db8::1]" } else { "node-1.example" }, port, ends);
            let read: Token = format!(" {}\n", token.text()).parse().unwrap();
            prop_assert_eq!(read.text(), token.text());
            prop_assert!(read.secret.is(token.secret.bytes()));
        }

        /// A token cut at any place is refused, and the message contains no part of it.
        #[test]
        fn a_part_of_a_token_is_refused(cut in 1usize..150) {
            let text = token("192.0.2.7", 7809, 1_764_150_000).text();
            let part = &text[..text.len().saturating_sub(cut)];
            let failure = part.parse::<Token>().unwrap_err();
            let secret = text.rsplit('/').next().unwrap();
            let shown = format!("{failure:?}");
            prop_assert!(!shown.contains(&secret[..8]));
        }

        #[test]
        fn other_texts_never_panic(text in ".{0,200}") {
            let _ = text.parse::<Token>();
            let _ = format!("{SCHEME}{text}").parse::<Token>();
        }
    }

    #[test]
    fn secrets_differ_and_are_not_shown() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert!(one.is(one.bytes()) && !one.is(other.bytes()));
        assert!(!one.is(&one.bytes()[..15]) && !one.is(b""));
        let token = token("a", 1, 2);
        assert!(!format!("{token:?}").contains(&hex(token.secret.bytes())));
        assert!(!format!("{token:?}").contains(&format!("{:?}", token.secret.bytes())));
    }
}
