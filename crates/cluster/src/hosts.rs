//! Where workers are.

use std::fmt;
use std::str::FromStr;

/// A worker's address: `HOST:PORT`, where it listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostAddress {
    host: String,
    port: u16,
}

impl FromStr for HostAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<HostAddress, String> {
        let wrong = || {
            format!("`{text}` is no address of a worker: write HOST:PORT, such as 127.0.0.1:7801")
        };
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_v6 = inner.is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
        if !is_v6 && (host.is_empty() || !host.chars().all(plain)) {
            return Err(wrong());
        }
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        Ok(HostAddress { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port() {
        for good in ["127.0.0.1:7801", "[::1]:7801", "node-3.example_net:1"] {
            assert_eq!(good.parse::<HostAddress>().unwrap().to_string(), good);
        }
        for bad in [
            "",
            "host",
            "host:",
            ":1",
            "host:0",
            "host:70000",
            "::1:7801",
            "a b:1",
            "[x]:1",
            "http://a:1",
        ] {
            let error = bad.parse::<HostAddress>().unwrap_err();
            assert!(error.contains("HOST:PORT"), "{error}");
        }
    }
}
