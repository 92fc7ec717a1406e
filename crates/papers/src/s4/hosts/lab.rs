//! The network of the experiments: a namespace for the target, one for each client, and one with the bridge between
//! them. Nothing is made in the namespace of the system, so no address and no link of it is met.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use ssdyno_session::Failure;

use super::tools::{Tools, run};

/// All namespaces of ours begin so.
const PREFIX: &str = "ssdyno-";

/// Where `ip netns` keeps them.
const PLACE: &str = "/run/netns";

/// Address of the target on its network.
pub(super) const TARGET_ADDRESS: &str = "10.83.0.1";

/// Rate of the target's link, both ways, and what may go at once, as `tc` takes them. The burst is a multiple of the 64 KiB
/// that TCP hands to the link at once; the queue is 8 ms of the rate.
const SHAPE: [&str; 7] = ["tbf", "rate", "1gbit", "burst", "128kb", "limit", "1mb"];

/// How the target's link is limited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Link {
    /// To 1 Gbit/s each way, that of the paper.
    Gigabit,
    /// Not at all: it is as fast as the machine.
    Unshaped,
}

impl Link {
    pub(super) fn name(self) -> &'static str {
        match self {
            Link::Gigabit => "1 Gbit/s",
            Link::Unshaped => "not limited",
        }
    }
}

/// The namespace of `role` in the experiments of the process `id`.
fn name_of(id: u32, role: &str) -> String {
    format!("{PREFIX}{id}-{role}")
}

/// The process whose experiments the namespace called `name` belongs to; `None`: it is not ours.
fn owner(name: &str) -> Option<u32> {
    let (id, role) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let number = role.strip_prefix("client-").is_some_and(|n| n.parse::<u16>().is_ok());
    let id = id.parse().ok().filter(|_| number || ["net", "target"].contains(&role))?;
    // The name must be exactly the one that we would build. A number such as 077 or +7 parses as
    // well, but no run of ours writes it.
    (name_of(id, role) == name).then_some(id)
}

/// Those of `names` that a run left behind which was killed: ours, of a process that is gone, and with no process in them.
fn leftovers(
    names: Vec<String>,
    is_running: &dyn Fn(u32) -> bool,
    is_used: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    // Three conditions protect other namespaces: the form of the name, a dead owner and no process
    // inside. A process number alone can be reused by another program.
    let is_left = |name: &String| owner(name).is_some_and(|id| !is_running(id)) && !is_used(name);
    names.into_iter().filter(is_left).collect()
}

/// The namespaces, with their links. Dropped, they are removed.
#[derive(Debug)]
pub(super) struct Lab {
    tools: Tools,
    id: u32,
    clients: u16,
    /// Those that were made, and are to be removed.
    made: Vec<String>,
}

impl Lab {
    /// Removes what killed runs left, and makes a network with `clients`.
    pub(super) fn build(tools: &Tools, clients: u16) -> Result<Lab, Failure> {
        let id = std::process::id();
        let mut lab = Lab { tools: tools.clone(), id, clients, made: Vec::new() };
        lab.remove_leftovers()?;
        lab.connect()?;
        Ok(lab)
    }

    fn ip(&self, words: &str) -> Result<String, Failure> {
        run(&self.tools.ip, &words.split_whitespace().collect::<Vec<_>>())
    }

    fn remove_leftovers(&self) -> Result<(), Failure> {
        let listed = self.ip("netns list")?;
        let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let names = listed.lines().filter_map(first).collect();
        // A process of our own number before us is gone.
        let is_running = |id: u32| id != self.id && Path::new(&format!("/proc/{id}")).exists();
        // Where that cannot be told, it is left alone.
        let is_used = |name: &str| {
            self.ip(&format!("netns pids {name}")).map_or(true, |pids| !pids.trim().is_empty())
        };
        for name in leftovers(names, &is_running, &is_used) {
            self.ip(&format!("netns del {name}"))?;
        }
        Ok(())
    }

    fn add(&mut self, role: &str) -> Result<String, Failure> {
        let name = name_of(self.id, role);
        self.ip(&format!("netns add {name}"))?;
        // The name is recorded directly after its creation. If a later command fails, the drop
        // still removes everything that exists so far.
        self.made.push(name.clone());
        Ok(name)
    }

    fn connect(&mut self) -> Result<(), Failure> {
        let net = self.add("net")?;
        self.ip(&format!("-n {net} link add bridge type bridge"))?;
        self.ip(&format!("-n {net} link set bridge up"))?;
        let clients = (1..=self.clients).map(|n| (client_role(n), client_address(n)));
        let target = ("target".to_owned(), TARGET_ADDRESS.to_owned());
        for (role, address) in std::iter::once(target).chain(clients.collect::<Vec<_>>()) {
            let name = self.add(&role)?;
            for words in [
                format!("link add link0 netns {name} type veth peer name {role} netns {net}"),
                format!("-n {net} link set {role} master bridge up"),
                format!("-n {name} addr add {address}/24 dev link0"),
                format!("-n {name} link set link0 up"),
                format!("-n {name} link set lo up"),
            ] {
                self.ip(&words)?;
            }
        }
        Ok(())
    }

    /// Limits the target's link, both ways, or limits it no more.
    pub(super) fn shape(&self, link: Link) -> Result<(), Failure> {
        // A queueing discipline shapes only packets that leave a device. Both ends of the link are
        // shaped, as each direction leaves at another end.
        for (namespace, device) in [(self.target(), "link0"), (self.name("net"), "target")] {
            let at = ["-n", &namespace, "qdisc"];
            // Where none is set, there is nothing to delete.
            // The old queue is removed first, because `tc add` fails if one exists. A change in
            // place would keep the packets of the previous load in the queue.
            let _ = run(&self.tools.tc, &[&at[..], &["del", "dev", device, "root"]].concat());
            if link == Link::Gigabit {
                let words = [&at[..], &["add", "dev", device, "root"], &SHAPE[..]].concat();
                run(&self.tools.tc, &words)?;
            }
        }
        Ok(())
    }

    fn name(&self, role: &str) -> String {
        name_of(self.id, role)
    }

    /// The namespace of the target.
    pub(super) fn target(&self) -> String {
        self.name("target")
    }

    /// The namespace of client `n`, from 1.
    pub(super) fn client(&self, n: u16) -> String {
        self.name(&client_role(n))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The namespaces are removed in the opposite order. The one with the bridge was made first
        // and is removed last, when no peer is attached to it.
        for name in self.made.iter().rev() {
            // What cannot be removed is found by the next run.
            let _ = self.ip(&format!("netns del {name}"));
        }
    }
}

fn client_role(n: u16) -> String {
    format!("client-{n}")
}

fn client_address(n: u16) -> String {
    format!("10.83.0.{}", n + 10)
}

/// What is limited, for a title.
pub(super) fn shape_told() -> String {
    SHAPE.join(" ")
}

/// The file that stands for `namespace`.
pub(super) fn file_of(namespace: &str) -> PathBuf {
    Path::new(PLACE).join(namespace)
}

/// Moves this thread into `namespace`: sockets that it makes are in it.
pub(super) fn enter(namespace: &str) -> Result<(), Failure> {
    let cannot = |error: String| {
        Failure::failed(format!("cannot enter the network namespace {namespace}: {error}"))
    };
    let file = File::open(file_of(namespace)).map_err(|error| cannot(error.to_string()))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| cannot(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_not_ours() {
        assert_eq!(owner(&name_of(77, "net")), Some(77));
        assert_eq!(owner(&name_of(77, &client_role(3))), Some(77));
        for other in [
            "ssdyno",
            "ssdyno-",
            "ssdyno-net",
            "ssdyno-x-net",
            "ssdyno-77-",
            "ssdyno-77-web",
            "ssdyno-77-client-",
            "ssdyno-77-client-x",
            "my-ssdyno-77-net",
            "ssdyno-077-net",
            "ssdyno-+7-net",
            "docker0",
        ] {
            assert_eq!(owner(other), None, "{other}");
        }
    }

    #[test]
    fn only_what_nobody_uses_is_left_over() {
        let all = ["ssdyno-1-net", "ssdyno-2-net", "ssdyno-2-target", "other", "ssdyno-2-mine"];
        let left = leftovers(all.map(str::to_owned).to_vec(), &|id| id == 1, &|name| {
            name == "ssdyno-2-target"
        });
        assert_eq!(left, ["ssdyno-2-net"]);
    }
}
