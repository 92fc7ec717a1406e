//! An NBD server in this process, written from the specification and without our own codec, with configurable
//! behaviour.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What every byte of an export is at first.
pub(super) const CONTENT: u8 = 0xA5;

/// How the server behaves. It exports `x` and `y`, which are one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behaviour {
    pub(super) size_bytes: usize,
    /// Each reply follows its request after this time, if no other request is before it.
    pub(super) delay: Duration,
    /// So many requests are read before they are answered, the last one first.
    pub(super) reversed: usize,
    /// Answers are sent in segments of so many bytes.
    pub(super) segments: Option<usize>,
    pub(super) read_only: bool,
    pub(super) no_fua: bool,
    pub(super) tls_only: bool,
    /// Knows no option but that for an export.
    pub(super) old: bool,
    /// Sent instead of the handshake.
    pub(super) greeting: Option<&'static [u8]>,
    /// Least, preferred and most bytes of a request.
    pub(super) blocks: Option<(u32, u32, u32)>,
    /// Every so many requests one fails with this error.
    pub(super) fails: Option<(u64, u32)>,
    /// After so many answers: closes, sends nonsense, or is silent.
    pub(super) closes_after: Option<u64>,
    /// Closes as soon as so many answers are sent.
    pub(super) leaves_after: Option<u64>,
    pub(super) bad_magic_after: Option<u64>,
    pub(super) bad_cookie_after: Option<u64>,
    pub(super) silent_after: Option<u64>,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            size_bytes: 4 << 20,
            delay: Duration::ZERO,
            reversed: 1,
            segments: None,
            read_only: false,
            no_fua: false,
            tls_only: false,
            old: false,
            greeting: None,
            blocks: None,
            fails: None,
            closes_after: None,
            leaves_after: None,
            bad_magic_after: None,
            bad_cookie_after: None,
            silent_after: None,
        }
    }
}

#[derive(Debug)]
struct State {
    behaviour: Behaviour,
    contents: Mutex<Vec<u8>>,
    connections: AtomicUsize,
    connections_most: AtomicUsize,
    durable: AtomicUsize,
}

/// Listens until the process ends.
#[derive(Debug)]
pub(super) struct Server {
    state: Arc<State>,
    port: u16,
    directory: tempfile::TempDir,
}

trait Socket: Read + Write + Send {}
impl Socket for TcpStream {}
impl Socket for UnixStream {}

impl Server {
    pub(super) fn start(behaviour: Behaviour) -> Server {
        let state = Arc::new(State {
            behaviour,
            contents: Mutex::new(vec![CONTENT; behaviour.size_bytes]),
            connections: AtomicUsize::new(0),
            connections_most: AtomicUsize::new(0),
            durable: AtomicUsize::new(0),
        });
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let local = UnixListener::bind(directory.path().join("socket")).unwrap();
        let of_tcp = Arc::clone(&state);
        thread::spawn(move || {
            for stream in tcp.incoming().flatten() {
                stream.set_nodelay(true).unwrap();
                serve(&of_tcp, stream);
            }
        });
        let of_local = Arc::clone(&state);
        thread::spawn(move || {
            for stream in local.incoming().flatten() {
                serve(&of_local, stream);
            }
        });
        Server { state, port, directory }
    }

    pub(super) fn uri(&self, export: &str) -> String {
        format!("nbd://127.0.0.1:{}/{export}", self.port)
    }

    pub(super) fn local_uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.directory.path().join("socket").display())
    }

    pub(super) fn contents(&self) -> Vec<u8> {
        self.state.contents.lock().unwrap().clone()
    }

    pub(super) fn fill(&self, byte: u8) {
        self.state.contents.lock().unwrap().fill(byte);
    }

    pub(super) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub(super) fn connections_most(&self) -> usize {
        self.state.connections_most.load(Ordering::SeqCst)
    }

    pub(super) fn durable_writes(&self) -> usize {
        self.state.durable.load(Ordering::SeqCst)
    }
}

fn serve(state: &Arc<State>, stream: impl Socket + 'static) {
    let state = Arc::clone(state);
    let now = state.connections.fetch_add(1, Ordering::SeqCst) + 1;
    state.connections_most.fetch_max(now, Ordering::SeqCst);
    thread::spawn(move || {
        let mut connection =
            Connection { state: Arc::clone(&state), stream: Box::new(stream), answered: 0 };
        // However it ends, it has ended.
        let _ = connection.run();
        drop(connection);
        state.connections.fetch_sub(1, Ordering::SeqCst);
    });
}

struct Connection {
    state: Arc<State>,
    stream: Box<dyn Socket>,
    answered: u64,
}

/// A request as it came, with its data.
struct Asked {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: usize,
    length: usize,
    data: Vec<u8>,
    came: Instant,
}

impl Connection {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn take_many(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn run(&mut self) -> io::Result<()> {
        if self.handshake()? { self.transmit() } else { Ok(()) }
    }

    fn flags(&self) -> u16 {
        let Behaviour { read_only, no_fua, .. } = self.state.behaviour;
        // Has flags, flush, trim, several connections.
        1 | 4 | 32 | 256 | if read_only { 2 } else { 0 } | if no_fua { 0 } else { 8 }
    }

    /// Whether the client chose an export.
    fn handshake(&mut self) -> io::Result<bool> {
        let behaviour = self.state.behaviour;
        if let Some(greeting) = behaviour.greeting {
            self.stream.write_all(greeting)?;
            return Ok(false);
        }
        self.stream.write_all(b"NBDMAGICIHAVEOPT")?;
        self.stream.write_all(&3_u16.to_be_bytes())?;
        let client = u32::from_be_bytes(self.take()?);
        assert_eq!(client, 3, "fixed newstyle, no zeroes");
        loop {
            assert_eq!(&self.take::<8>()?, b"IHAVEOPT");
            let option = u32::from_be_bytes(self.take()?);
            let length = u32::from_be_bytes(self.take()?) as usize;
            let data = self.take_many(length)?;
            let known = |name: &[u8]| name == b"x" || name == b"y";
            match option {
                1 if known(&data) => {
                    let size = behaviour.size_bytes as u64;
                    self.stream.write_all(&size.to_be_bytes())?;
                    self.stream.write_all(&self.flags().to_be_bytes())?;
                    return Ok(true);
                }
                1 => return Ok(false),
                2 => return Ok(false),
                _ if behaviour.old => self.answer_option(option, 1 << 31 | 1, b"")?,
                _ if behaviour.tls_only => self.answer_option(option, 1 << 31 | 5, b"TLS first")?,
                3 => {
                    for name in [b"x", b"y"] {
                        self.answer_option(3, 2, &[&1_u32.to_be_bytes()[..], name].concat())?;
                    }
                    self.answer_option(3, 1, b"")?;
                }
                7 => {
                    let name_bytes = u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
                    let name = &data[4..4 + name_bytes];
                    assert_eq!(data[4 + name_bytes..], [0, 1, 0, 3], "block sizes are asked for");
                    if !known(name) {
                        self.answer_option(7, 1 << 31 | 6, b"")?;
                        continue;
                    }
                    self.inform()?;
                    return Ok(true);
                }
                other => panic!("option {other}"),
            }
        }
    }

    fn inform(&mut self) -> io::Result<()> {
        let Behaviour { size_bytes, blocks, .. } = self.state.behaviour;
        let size = (size_bytes as u64).to_be_bytes();
        let export = [&0_u16.to_be_bytes()[..], &size, &self.flags().to_be_bytes()].concat();
        self.answer_option(7, 3, &export)?;
        // An unrequested name: the client must ignore it.
        self.answer_option(7, 3, b"\0\x01name")?;
        if let Some((least, preferred, most)) = blocks {
            let sizes = [least, preferred, most].map(u32::to_be_bytes).concat();
            self.answer_option(7, 3, &[&3_u16.to_be_bytes()[..], &sizes].concat())?;
        }
        self.answer_option(7, 1, b"")
    }

    fn answer_option(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let numbers = [option, kind, data.len() as u32].map(u32::to_be_bytes).concat();
        let magic = 0x0003_e889_0455_65a9_u64.to_be_bytes();
        self.stream.write_all(&[&magic[..], &numbers, data].concat())
    }

    fn ask(&mut self) -> io::Result<Option<Asked>> {
        let header: [u8; 28] = self.take()?;
        let came = Instant::now();
        assert_eq!(header[..4], 0x2560_9513_u32.to_be_bytes(), "magic number");
        let length = u32::from_be_bytes(header[24..].try_into().unwrap()) as usize;
        let asked = Asked {
            flags: u16::from_be_bytes([header[4], header[5]]),
            kind: u16::from_be_bytes([header[6], header[7]]),
            cookie: u64::from_be_bytes(header[8..16].try_into().unwrap()),
            offset: u64::from_be_bytes(header[16..24].try_into().unwrap()) as usize,
            length,
            data: if header[7] == 1 { self.take_many(length)? } else { Vec::new() },
            came,
        };
        let least = self.state.behaviour.blocks.map_or(1, |(least, _, _)| least as usize);
        assert!((asked.offset | asked.length).is_multiple_of(least), "no whole blocks");
        assert!(asked.offset + asked.length <= self.state.behaviour.size_bytes, "beyond the end");
        Ok((asked.kind != 2).then_some(asked))
    }

    fn transmit(&mut self) -> io::Result<()> {
        loop {
            let mut asked = Vec::new();
            while asked.len() < self.state.behaviour.reversed {
                match self.ask()? {
                    Some(request) => asked.push(request),
                    None => return Ok(()),
                }
            }
            for request in asked.into_iter().rev() {
                if !self.answer(&request)? {
                    return Ok(());
                }
            }
        }
    }

    /// Whether it goes on.
    fn answer(&mut self, request: &Asked) -> io::Result<bool> {
        let behaviour = self.state.behaviour;
        thread::sleep(behaviour.delay.saturating_sub(request.came.elapsed()));
        let after = |count: Option<u64>| count.is_some_and(|count| self.answered >= count);
        if after(behaviour.closes_after) {
            return Ok(false);
        }
        if after(behaviour.silent_after) {
            // Reads on, as a server that hangs below does, until the client goes.
            return Ok(true);
        }
        let magic = if after(behaviour.bad_magic_after) { 0xbad } else { 0x6744_6698_u32 };
        let mask = if after(behaviour.bad_cookie_after) { 1 << 63 } else { 0 };
        self.answered += 1;
        let fails = behaviour.fails.filter(|(every, _)| self.answered.is_multiple_of(*every));
        let error = fails.map_or(0, |(_, error)| error);
        let data = if error == 0 { self.carry_out(request) } else { Vec::new() };
        let mut message = [magic.to_be_bytes(), error.to_be_bytes()].concat();
        message.extend((request.cookie ^ mask).to_be_bytes());
        message.extend(data);
        for segment in message.chunks(behaviour.segments.unwrap_or(message.len())) {
            self.stream.write_all(segment)?;
        }
        Ok(behaviour.leaves_after != Some(self.answered))
    }

    fn carry_out(&self, request: &Asked) -> Vec<u8> {
        let mut contents = self.state.contents.lock().unwrap();
        let place = &mut contents[request.offset..request.offset + request.length];
        match request.kind {
            0 => return place.to_vec(),
            1 => place.copy_from_slice(&request.data),
            3 => assert_eq!((request.offset, request.length), (0, 0)),
            4 => place.fill(0),
            kind => panic!("command {kind}"),
        }
        if request.flags & 1 != 0 {
            self.state.durable.fetch_add(1, Ordering::SeqCst);
        }
        Vec::new()
    }
}
