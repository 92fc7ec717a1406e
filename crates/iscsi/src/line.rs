//! One connection over a socket: one thread reads, another sends the responses of commands that
//! have ended.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::connection::{Connection, ConnectionFlow};
use crate::pdu::{BHS_BYTES, Framing, Pdu};
use crate::pending::Transport;
use crate::target::IscsiTarget;
use crate::wire;

/// How long a login may take between its PDUs.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15);
/// An initiator that takes no response for this time is gone.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The socket, and the messages between its threads.
struct Line {
    stream: TcpStream,
    news: Mutex<News>,
    changed: Condvar,
}

#[derive(Default)]
struct News {
    /// Something has ended.
    mail: bool,
    /// Nothing is read any more.
    over: bool,
}

impl Line {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over(&self) {
        self.news().over = true;
        self.changed.notify_all();
    }

    /// Waits for something that has ended; false when nothing is to be sent any more.
    fn waits_for_mail(&self) -> bool {
        let mut news = self.news();
        while !news.mail && !news.over {
            news = self.changed.wait(news).unwrap_or_else(PoisonError::into_inner);
        }
        news.mail = false;
        !news.over
    }
}

impl Transport for Line {
    fn hang_up(&self) {
        // One that is closed already is what is wanted.
        let _closed = self.stream.shutdown(Shutdown::Read);
    }

    fn wake(&self) {
        self.news().mail = true;
        self.changed.notify_all();
    }
}

/// The connection and its way out: whoever has it numbers answers and sends them, in one order.
struct Talk<'a> {
    connection: Connection,
    stream: &'a TcpStream,
    out: Vec<Pdu>,
    bytes: Vec<u8>,
}

impl Talk<'_> {
    /// Sends what is answered.
    fn send(&mut self, framing: Framing) -> io::Result<()> {
        self.bytes.clear();
        for pdu in self.out.drain(..) {
            pdu.write(framing, &mut self.bytes);
        }
        self.stream.write_all(&self.bytes)
    }
}

fn lock<'a, 'b>(talk: &'a Mutex<Talk<'b>>) -> MutexGuard<'a, Talk<'b>> {
    talk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection until its end.
pub(crate) fn serve(stream: &TcpStream, target: Arc<IscsiTarget>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOGIN_TIMEOUT))?;
    stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
    let (news, changed) = (Mutex::default(), Condvar::new());
    let line = Arc::new(Line { stream: stream.try_clone()?, news, changed });
    let portal = stream.local_addr()?.to_string();
    let connection = Connection::new(target, portal, line.clone());
    let talk = Mutex::new(Talk { connection, stream, out: Vec::new(), bytes: Vec::new() });
    let mut reader = io::BufReader::with_capacity(1 << 16, stream);
    thread::scope(|scope| {
        let name = "iscsi-answers".to_owned();
        let answers = thread::Builder::new().name(name);
        answers.spawn_scoped(scope, || answers_until_over(&line, &talk))?;
        let ended = requests(&mut reader, &talk);
        line.over();
        ended
    })?;
    drop(talk);
    // Unread bytes would turn our last reply into a reset of the connection.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut rest = [0; BHS_BYTES * 64];
    for _ in 0..64 {
        if reader.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Accepts requests, and sends the immediate responses.
fn requests(reader: &mut impl Read, talk: &Mutex<Talk<'_>>) -> io::Result<()> {
    loop {
        // It changes with what is received, here.
        let framing = lock(talk).connection.framing();
        let Some(pdu) = wire::read(reader, framing)? else { return Ok(()) };
        let mut talk = lock(talk);
        let Talk { connection, stream, out, .. } = &mut *talk;
        let logging_in = connection.is_logging_in();
        let flow = connection.receive(pdu, out);
        if logging_in && !connection.is_logging_in() {
            stream.set_read_timeout(None)?;
        }
        talk.send(framing)?;
        if flow == ConnectionFlow::Ends {
            return Ok(());
        }
    }
}

/// Sends the responses of ended commands, until the connection ends.
fn answers_until_over(line: &Line, talk: &Mutex<Talk<'_>>) {
    while line.waits_for_mail() {
        let mut talk = lock(talk);
        let framing = talk.connection.framing();
        let Talk { connection, out, .. } = &mut *talk;
        connection.completed(out);
        if talk.send(framing).is_err() {
            // The peer is gone: the reader ends the session.
            let _closed = line.stream.shutdown(Shutdown::Both);
            return;
        }
    }
}
