//! Names of network targets.
//!
//! NBD's are those of its project (`doc/uri.md`): `nbd://[HOST[:PORT]][/EXPORT]` over TCP and
//! `nbd+unix:///[EXPORT]?socket=PATH` over a local socket. iSCSI's are those of libiscsi:
//! `iscsi://HOST[:PORT]/IQN/LUN`. Names of exports and targets are percent-encoded.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// The port that IANA assigned to NBD.
const NBD_PORT: u16 = 10809;

/// The name of this program to iSCSI targets where none is given.
const INITIATOR: &str = "iqn.2026-01.org.ssdyno:initiator";

/// Longest name of an iSCSI node (RFC 7143, clause 4.2.7.1).
const NODE_MOST_BYTES: usize = 223;

/// The largest number of a unit in flat space addressing (SAM-5, 4.7).
const LUN_MOST: u16 = 0x3fff;

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

/// The offer of a server, by its protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// The name of an export; empty: what it offers by default.
    Nbd {
        export: String,
    },
    Iscsi(UnitName),
}

/// A logical unit of an iSCSI target, for an initiator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnitName {
    pub(crate) target: String,
    pub(crate) lun: u16,
    /// Our name towards the target.
    pub(crate) initiator: String,
}

impl Uri {
    /// Parses `text`; the error describes the problem.
    pub(crate) fn parse(text: &str) -> Result<Uri, String> {
        let (scheme, rest) = text.split_once("://").ok_or("it has no `://`")?;
        // The parts are taken off from the end (RFC 3986, clause 3): a query may have `/` and
        // `:` of its own, such as those in the path of a socket.
        let (rest, _fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // Schemes do not differ by case (RFC 3986, clause 3.1). TLS has a message of its own,
        // because a general one would leave open whether the name is misspelt.
        let (address, offer) = match scheme.to_ascii_lowercase().as_str() {
            "nbd" => (tcp(authority, NBD_PORT)?, export(path)?),
            "nbd+unix" => (unix(authority, query)?, export(path)?),
            "iscsi" => (portal(authority)?, Offer::Iscsi(unit(path, query)?)),
            "nbds" | "nbds+unix" => return Err("TLS is not supported".to_owned()),
            other => return Err(format!("`{other}` is not supported")),
        };
        Ok(Uri { address, offer })
    }

    /// The name to type for it: the export or unit, or the server if it has no name.
    pub(crate) fn short_name(&self) -> String {
        match &self.offer {
            Offer::Nbd { export } if export.is_empty() => self.address.to_string(),
            Offer::Nbd { export } => export.clone(),
            Offer::Iscsi(UnitName { target, lun, .. }) => format!("{target}/{lun}"),
        }
    }
}

fn export(path: &str) -> Result<Offer, String> {
    let export = decode(path)?;
    if export.len() > EXPORT_MOST_BYTES {
        return Err(format!("the name of an export has at most {EXPORT_MOST_BYTES} bytes"));
    }
    Ok(Offer::Nbd { export })
}

/// Where an iSCSI target listens.
fn portal(authority: &str) -> Result<Address, String> {
    // The names of libiscsi have a user and a secret here. A login without them would end in a
    // refusal of the target, which says less than we know.
    if authority.contains('@') {
        return Err("a user name is for CHAP, which is not supported".to_owned());
    }
    if authority.is_empty() {
        return Err("it names no host".to_owned());
    }
    tcp(authority, ssdyno_spec::iscsi::PORT)
}

/// The unit that `path` names, for the initiator in `query`.
fn unit(path: &str, query: &str) -> Result<UnitName, String> {
    let (target, lun) = path.split_once('/').unwrap_or((path, ""));
    let name = |what: &str, text: &str| {
        let name = decode(text)?;
        // A null byte ends a pair of the login's text (RFC 7143, clause 6.1). A name with such a
        // byte could set other keys of the login.
        let fits = (1..=NODE_MOST_BYTES).contains(&name.len()) && !name.contains('\0');
        fits.then_some(name).ok_or_else(|| format!("the name of {what} has 1 to 223 bytes"))
    };
    let target = name("a target", target)?;
    let number = lun.parse().ok().filter(|number| *number <= LUN_MOST);
    let lun = number.ok_or_else(|| format!("`{lun}` is not a unit number: use 0 to {LUN_MOST}"))?;
    let given = query.split('&').find_map(|pair| pair.strip_prefix("initiator="));
    let initiator = name("an initiator", given.unwrap_or(INITIATOR))?;
    Ok(UnitName { target, lun, initiator })
}

fn tcp(authority: &str, port_untold: u16) -> Result<Address, String> {
    if authority.contains('@') {
        return Err("a user name is for TLS, which is not supported".to_owned());
    }
    // An IPv6 address has colons of its own. It stands in brackets therefore (RFC 3986, clause
    // 3.2.2), and a port can only follow the closing one.
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
        // A colon without a port means the usual port (RFC 3986, clause 3.2.3). Port 0 is
        // refused below: a server never listens there.
        None | Some("") => port_untold,
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("`{text}` is not a port: use 1 to 65535")),
        },
    };
    let host = decode(host)?;
    let host = if host.is_empty() { "localhost".to_owned() } else { host };
    Ok(Address::Tcp { host, port })
}

fn unix(authority: &str, query: &str) -> Result<Address, String> {
    if !authority.is_empty() {
        return Err(format!("a local socket has no host (`{authority}`): use `nbd+unix:///`"));
    }
    let value = query.split('&').find_map(|pair| pair.strip_prefix("socket="));
    match value.map(decode).transpose()? {
        Some(path) if !path.is_empty() => Ok(Address::Unix(path.into())),
        _ => Err("it names no socket: add `?socket=PATH`".to_owned()),
    }
}

/// Undoes percent-encoding (RFC 3986, 2.1).
fn decode(text: &str) -> Result<String, String> {
    let is_triplet = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !text.split('%').skip(1).all(is_triplet) {
        return Err(format!("two hexadecimal digits must follow each `%` in `{text}`"));
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| format!("`{text}` is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_network;

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
    fn units_are_named_by_target_and_number() {
        for (text, port, target, lun, initiator) in [
            ("iscsi://h/iqn.2026-01.a:b/0", 3260, "iqn.2026-01.a:b", 0, INITIATOR),
            ("iscsi://h:1/eui.0123456789abcdef/300", 1, "eui.0123456789abcdef", 300, INITIATOR),
            ("ISCSI://h:/iqn.a%3Ab/7?x=y&initiator=iqn.me%3Ax", 3260, "iqn.a:b", 7, "iqn.me:x"),
        ] {
            assert!(is_network(text));
            let uri = Uri::parse(text).unwrap();
            assert_eq!(uri.address, Address::Tcp { host: "h".to_owned(), port });
            let (target, initiator) = (target.to_owned(), initiator.to_owned());
            assert_eq!(uri.short_name(), format!("{target}/{lun}"));
            assert_eq!(uri.offer, Offer::Iscsi(UnitName { target, lun, initiator }), "{text}");
        }
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
            ("iscsi://h", "name of a target"),
            ("iscsi:///iqn.2026-01.a:b/0", "no host"),
            ("iscsi://h/iqn.2026-01.a:b", "unit number"),
            ("iscsi://h/iqn.2026-01.a:b/16384", "unit number"),
            ("iscsi://me%secret@h/iqn.2026-01.a:b/0", "CHAP"),
            ("iscsi://h/iqn.2026-01.a:b/0?initiator=", "name of an initiator"),
            ("iser://h/iqn.2026-01.a:b/0", "`iser`"),
        ] {
            assert!(is_network(text), "{text}");
            let error = Uri::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(Uri::parse(&format!("nbd://h/{}", "x".repeat(4097))).is_err());
        for other in ["nbd:", "/dev/nbd0", "./nbd", "sim:nbd", "scsi://h", "xnbd://h", "null:"] {
            assert!(!is_network(other), "{other}");
        }
    }
}
