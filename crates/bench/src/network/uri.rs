//! Names of network targets.
//!
//! NBD's are those of its project (`doc/uri.md`): `nbd://[HOST[:PORT]][/EXPORT]` over TCP and
//! `nbd+unix:///[EXPORT]?socket=PATH` over a local socket. Names of exports are percent-encoded.

use std::fmt;
use std::path::PathBuf;

/// The port that IANA assigned to NBD.
const NBD_PORT: u16 = 10809;

/// Longest name of an export (NBD protocol, "Values", strings).
const EXPORT_MOST_BYTES: usize = 4096;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A name, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Uri {
    pub(crate) address: Address,
    pub(crate) offer: Offer,
}

/// What a server offers, by the protocol that it speaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// The name of an export; empty: what it offers by default.
    Nbd { export: String },
}

impl Uri {
    /// Takes `text` apart; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Uri, String> {
        let (scheme, rest) = text.split_once("://").ok_or("it has no `://`")?;
        let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let export = decode(path)?;
        if export.len() > EXPORT_MOST_BYTES {
            return Err(format!("the name of an export has at most {EXPORT_MOST_BYTES} bytes"));
        }
        let address = match scheme.to_ascii_lowercase().as_str() {
            "nbd" => tcp(authority)?,
            "nbd+unix" => unix(authority, query)?,
            "nbds" | "nbds+unix" => return Err("TLS is not supported".to_owned()),
            other => return Err(format!("`{other}` is not supported")),
        };
        Ok(Uri { address, offer: Offer::Nbd { export } })
    }

    /// What names it for somebody who must type it: the export, or the server where it has no name.
    pub(crate) fn short_name(&self) -> String {
        match &self.offer {
            Offer::Nbd { export } if export.is_empty() => self.address.to_string(),
            Offer::Nbd { export } => export.clone(),
        }
    }
}

fn tcp(authority: &str) -> Result<Address, String> {
    if authority.contains('@') {
        return Err("a user is for TLS, which is not supported".to_owned());
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("`[` has no `]`")?;
            let port = after.strip_prefix(':');
            if port.is_none() && !after.is_empty() {
                return Err(format!("`{after}` follows the address"));
            }
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None | Some("") => NBD_PORT,
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("`{text}` is no port: 1 to 65535")),
        },
    };
    let host = decode(host)?;
    let host = if host.is_empty() { "localhost".to_owned() } else { host };
    Ok(Address::Tcp { host, port })
}

fn unix(authority: &str, query: &str) -> Result<Address, String> {
    if !authority.is_empty() {
        return Err(format!("a local socket has no host (`{authority}`): write `nbd+unix:///`"));
    }
    let value = query.split('&').find_map(|pair| pair.strip_prefix("socket="));
    match value.map(decode).transpose()? {
        Some(path) if !path.is_empty() => Ok(Address::Unix(path.into())),
        _ => Err("it names no socket: add `?socket=PATH`".to_owned()),
    }
}

/// Undoes percent-encoding (RFC 3986, 2.1).
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.push((high << 4 | low) as u8),
            _ => return Err(format!("two hexadecimal digits must follow each `%` in `{text}`")),
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::is_network;

    #[test]
    fn names_are_taken_apart() {
        let tcp = |host: &str, port| Address::Tcp { host: host.to_owned(), port };
        for (text, address, export) in [
            ("nbd://", tcp("localhost", NBD_PORT), ""),
            ("nbd://h", tcp("h", NBD_PORT), ""),
            ("nbd://h/", tcp("h", NBD_PORT), ""),
            ("NBD://h:1/x", tcp("h", 1), "x"),
            ("nbd://[::1]:7/a/b", tcp("::1", 7), "a/b"),
            ("nbd://[fe80::1]//b", tcp("fe80::1", NBD_PORT), "/b"),
            ("nbd://10.0.0.1/a%20b%2F?x=y#z", tcp("10.0.0.1", NBD_PORT), "a b/"),
            ("nbd+unix:///?socket=/run/a", Address::Unix("/run/a".into()), ""),
            ("nbd+unix:///e.toml?a=b&socket=s%20t", Address::Unix("s t".into()), "e.toml"),
        ] {
            assert!(is_network(text));
            let uri = Uri::parse(text).unwrap();
            let offer = Offer::Nbd { export: export.to_owned() };
            assert_eq!((uri.address, uri.offer), (address, offer), "{text}");
        }
        let shown = |text| Uri::parse(text).unwrap().short_name();
        assert_eq!([shown("nbd://[::1]:7"), shown("nbd://h/x")], ["[::1]:7", "x"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, says) in [
            ("nbds://h/x", "TLS"),
            ("nbd://u@h", "TLS"),
            ("nbd+vsock://1", "nbd+vsock"),
            ("nbd://h:0", "port"),
            ("nbd://h:99999", "port"),
            ("nbd://[::1", "`]`"),
            ("nbd://[::1]x", "follows"),
            ("nbd://h/%4", "hexadecimal"),
            ("nbd://h/%ff", "UTF-8"),
            ("nbd+unix://h/x?socket=s", "host"),
            ("nbd+unix:///x", "socket="),
        ] {
            assert!(is_network(text), "{text}");
            let error = Uri::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(Uri::parse(&format!("nbd://h/{}", "x".repeat(4097))).is_err());
        for other in ["nbd:", "/dev/nbd0", "./nbd", "sim:nbd", "iscsi://h", "xnbd://h", "null:"] {
            assert!(!is_network(other), "{other}");
        }
    }
}
