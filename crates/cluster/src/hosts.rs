//! Where workers are.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// How a worker is reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HostAddress {
    /// `[tls://]HOST:PORT`: it listens there.
    Listening {
        /// Name or address; an IPv6 address stands in brackets.
        host: String,
        /// Its port, not 0.
        port: u16,
        /// Whether `tls://` is before it: a worker on loopback is reached without TLS otherwise.
        tls: bool,
    },
    /// `[USER@]HOST` or `ssh://[USER@]HOST[:PORT]`: ssh starts it for this run, and it ends with it.
    Ssh {
        /// The name of the host for ssh, with the user before it; a name from its configuration
        /// also works.
        destination: String,
        /// Another port than ssh would take.
        port: Option<u16>,
    },
}

/// The valid names of a host. None begins with a hyphen: ssh would take it for an option.
fn is_host(host: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    !host.is_empty() && !host.starts_with('-') && host.chars().all(plain)
}

fn is_v6_in_brackets(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok())
}

fn port_of(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

/// `[USER@]HOST`, as ssh takes it.
fn destination(text: &str) -> Option<String> {
    // The last `@` separates the user, because a user name may contain one
    // (`user@domain@host`) and a host name may not.
    let (user, host) =
        text.rsplit_once('@').map_or((None, text), |(user, host)| (Some(user), host));
    // ssh takes an IPv6 address without brackets. The brackets are needed only in
    // `HOST:PORT`, where the address itself contains colons.
    let bare = is_v6_in_brackets(host).then(|| host.trim_matches(['[', ']']));
    let is_good = (is_host(host) || bare.is_some()) && user.is_none_or(is_host);
    let user = user.map_or(String::new(), |user| format!("{user}@"));
    is_good.then(|| format!("{user}{}", bare.unwrap_or(host)))
}

/// `HOST:PORT` of a worker.
fn listening(text: &str, tls: bool) -> Option<HostAddress> {
    let (host, port) = text.rsplit_once(':')?;
    let is_good = is_host(host) || is_v6_in_brackets(host);
    let port = port_of(port).filter(|_| is_good)?;
    Some(HostAddress::Listening { host: host.to_owned(), port, tls })
}

/// Whether `host` is this machine, whatever the network is: what is sent to it stays here.
pub(crate) fn is_loopback(host: &str) -> bool {
    // The address is parsed, not compared as text: all of 127.0.0.0/8 is loopback. Every other name counts as remote,
    // so a name that a DNS server controls can never avoid TLS.
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    address.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
}

impl HostAddress {
    /// Whether it is reached by TLS: what leaves this machine has to be, but for ssh, which has its own.
    pub fn is_tls(&self) -> bool {
        matches!(self, HostAddress::Listening { host, tls, .. } if *tls || !is_loopback(host))
    }
}

impl FromStr for HostAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<HostAddress, String> {
        let text = text.trim();
        let address = if let Some(rest) = text.strip_prefix("ssh://") {
            let (host, port) = match rest.rsplit_once(':') {
                // In `ssh://[::1]` the last colon belongs to the address. Only a colon
                // after the closing bracket begins a port.
                Some((host, port)) if !rest.ends_with(']') => (host, Some(port)),
                _ => (rest, None),
            };
            let number = port.map(port_of);
            let destination = destination(host).filter(|_| number != Some(None));
            destination.map(|destination| HostAddress::Ssh { destination, port: number.flatten() })
        } else if let Some(rest) = text.strip_prefix("tls://") {
            listening(rest, true)
        } else if text.contains(':') && !text.contains('@') {
            // `user@host:port` is not accepted without `ssh://`. scp reads the text after the colon
            // as a path, so the short form would be a trap.
            listening(text, false)
        } else {
            destination(text).map(|destination| HostAddress::Ssh { destination, port: None })
        };
        address.ok_or_else(|| {
            format!(
                "`{text}` is not a host: use [USER@]HOST for ssh, or HOST:PORT of a listening worker, such as 127.0.0.1:7801"
            )
        })
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostAddress::Listening { host, port, tls } => {
                let scheme = if *tls { "tls://" } else { "" };
                write!(f, "{scheme}{host}:{port}")
            }
            HostAddress::Ssh { destination, port: None } => f.write_str(destination),
            HostAddress::Ssh { destination, port: Some(port) } => {
                let (user, host) = match destination.rsplit_once('@') {
                    Some((user, host)) => (format!("{user}@"), host),
                    None => (String::new(), destination.as_str()),
                };
                // This must be the inverse of `from_str`: a plan stores the text and reads it again. Without brackets
                // the port would become the last group of the address.
                if host.contains(':') {
                    return write!(f, "ssh://{user}[{host}]:{port}");
                }
                write!(f, "ssh://{user}{host}:{port}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HostAddress, String> {
        text.parse()
    }

    fn ssh(destination: &str, port: Option<u16>) -> HostAddress {
        HostAddress::Ssh { destination: destination.to_owned(), port }
    }

    #[test]
    fn workers_that_listen_have_a_port() {
        for (good, tls) in [
            ("127.0.0.1:7801", false),
            ("[::1]:7801", false),
            ("localhost:7801", false),
            ("node-3.example_net:1", true),
            ("192.0.2.7:1", true),
            ("tls://127.0.0.1:7801", true),
            ("tls://[::1]:7801", true),
        ] {
            let address = read(good).unwrap();
            assert!(matches!(address, HostAddress::Listening { .. }), "{good}");
            assert_eq!(address.is_tls(), tls, "{good}");
            assert_eq!(address.to_string(), good);
        }
    }

    #[test]
    fn the_others_are_reached_by_ssh() {
        for (text, expected) in [
            ("a", ssh("a", None)),
            ("admin@b.example", ssh("admin@b.example", None)),
            ("root@[fe80::1]", ssh("root@fe80::1", None)),
            ("ssh://admin@b:2222", ssh("admin@b", Some(2222))),
            ("ssh://b", ssh("b", None)),
            ("ssh://root@[::1]:22", ssh("root@::1", Some(22))),
        ] {
            let address = read(text).unwrap();
            assert_eq!(address, expected, "{text}");
            if address != ssh("root@fe80::1", None) {
                assert_eq!(read(&address.to_string()).unwrap(), address, "{text}");
            }
        }
    }

    /// A host that begins with a hyphen would be an option of ssh, which can start programs.
    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "",
            "host:",
            ":1",
            "host:0",
            "host:70000",
            "::1:7801",
            "a b:1",
            "[x]:1",
            "http://a:1",
            "-oProxyCommand=x",
            "a@-b",
            "-l@b",
            "a@b:22",
            "ssh://a:0",
            "ssh://",
            "ssh://-x",
            "a;b",
            "a\nb",
            "$(x)",
            "@a",
            "tls://a",
            "tls://a@b:1",
            "tls://-x:1",
            "tls://tls://a:1",
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains("HOST:PORT"), "{error}");
        }
    }
}
