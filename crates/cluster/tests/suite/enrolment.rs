//! Workers that enrol and listen with TLS, over loopback: real connections, certificates that are what they should not be.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use ssdyno_cluster::{
    EnrolledWorker, Hosts, Invitation, InvitationOptions, WorkerConsent, WorkerListener,
    WorkerService, enrol_worker, run_on_hosts, serve_listener,
};
use ssdyno_figures::KeepGoing;
use ssdyno_session::{Failure, FailureKind, Measured, RunSpec};

const VERSION: &str = "1.2.3";
const DAY: Duration = Duration::from_secs(86_400);

/// Directories of a controller and a worker.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn controller(&self) -> PathBuf {
        self.0.path().join("a/controller")
    }

    pub(crate) fn worker(&self) -> PathBuf {
        self.0.path().join("b/worker")
    }
}

fn options() -> InvitationOptions {
    let listen = "127.0.0.1:0".parse().unwrap();
    InvitationOptions { listen, valid_for: Duration::from_secs(30), ..InvitationOptions::default() }
}

type Waited = (Result<EnrolledWorker, Failure>, Vec<String>);

/// An invitation that is waited for in a thread; gives its token.
fn invite(place: &Place, options: InvitationOptions) -> (String, JoinHandle<Waited>) {
    let invitation = Invitation::open(&place.controller(), options).unwrap();
    let token = invitation.token();
    let wait = move || {
        let mut refused = Vec::new();
        let done = invitation.wait(|| false, &mut |why| refused.push(why.to_owned()));
        (done, refused)
    };
    (token, std::thread::spawn(wait))
}

/// Enrols the worker of `place`.
pub(crate) fn enrolled(place: &Place) -> EnrolledWorker {
    enrolled_as(place, &[])
}

/// The same, by `names`.
pub(crate) fn enrolled_as(place: &Place, names: &[&str]) -> EnrolledWorker {
    let (token, waiting) = invite(place, options());
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    enrol_worker(&token, &place.worker(), &names).unwrap();
    waiting.join().unwrap().0.unwrap()
}

/// A worker with TLS in a thread of its own.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    refused: Arc<Mutex<Vec<String>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Running {
    pub(crate) fn new(directory: &Path) -> Running {
        Running::on(WorkerListener::bind_tls("127.0.0.1:0".parse().unwrap(), directory).unwrap())
    }

    fn on(listener: WorkerListener) -> Running {
        let refused: Arc<Mutex<Vec<String>>> = Arc::default();
        let list = Arc::clone(&refused);
        let listener = listener.on_refused(move |why| list.lock().unwrap().push(why.to_owned()));
        let (address, end) = (listener.address(), Arc::new(AtomicBool::new(false)));
        let ends = Arc::clone(&end);
        let service = WorkerService::new(WorkerConsent::default(), VERSION);
        let serve =
            move || serve_listener(listener, &service, move || ends.load(Ordering::Relaxed));
        Running { address, refused, end, thread: Some(std::thread::spawn(serve)) }
    }

    /// Waits for its report on a client.
    pub(crate) fn refusal(&self) -> String {
        for _ in 0..200 {
            if let Some(why) = self.refused.lock().unwrap().first() {
                return why.clone();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("nobody was refused");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

pub(crate) fn run(host: &str, identity: &Path) -> Result<Measured, Failure> {
    let spec = RunSpec {
        target: Some("sim:delay-100us".to_owned()),
        duration: "50ms".parse().ok(),
        ..RunSpec::default()
    };
    let hosts = Hosts {
        addresses: vec![host.parse().unwrap()],
        identity: Some(identity.to_owned()),
        version: VERSION.to_owned(),
        ..Hosts::default()
    };
    run_on_hosts(&hosts, &spec, &mut |_| KeepGoing::Continue)
}

pub(crate) fn text(failure: &Failure) -> String {
    format!("{} | {}", failure.message, failure.help.as_deref().unwrap_or_default())
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The certificate and the key of the authority in `controller`, by what the file says alone.
fn authority(controller: &Path) -> (String, Issuer<'static, KeyPair>) {
    let text = std::fs::read_to_string(controller.join("authority.pem")).unwrap();
    let end = text.find("-----BEGIN PRIVATE KEY").unwrap();
    let key = KeyPair::from_pem(&text[end..]).unwrap();
    (text[..end].to_owned(), Issuer::from_ca_cert_pem(&text[..end], key).unwrap())
}

/// Writes a certificate of the authority of `controller` with dates and a use of our choice to `file`.
fn forge(
    controller: &Path,
    file: &Path,
    usage: ExtendedKeyUsagePurpose,
    (from, to): (SystemTime, SystemTime),
) {
    let (pem, issuer) = authority(controller);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (from.into(), to.into());
    params.extended_key_usages = vec![usage];
    let own = params.signed_by(&key, &issuer).unwrap().pem();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, own + &pem + &key.serialize_pem()).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn an_enrolled_worker_runs_over_tls() {
    let place = Place::new();
    let worker = enrolled(&place);
    assert!(worker.names.iter().any(|name| name == "127.0.0.1"), "{worker:?}");
    assert!(worker.peer.ip().is_loopback());
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    let measured = run(&host, &place.controller()).unwrap();
    assert!(measured.failure.is_none() && measured.result.requests > 100);
    assert_eq!(measured.result.hosts[0].name, host);
    assert!(running.refused.lock().unwrap().is_empty());
}

#[test]
fn keys_are_for_their_owner_alone() {
    let place = Place::new();
    enrolled(&place);
    let (controller, worker) = (place.controller(), place.worker());
    for directory in [&controller, &worker] {
        assert_eq!(mode(directory), 0o700);
    }
    let mut files = Vec::new();
    for directory in [&controller, &worker] {
        files.extend(std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()));
    }
    assert_eq!(files.len(), 4, "nothing is left over: {files:?}");
    assert!(files.iter().all(|file| mode(file) == 0o600));
    // The key of the worker is with nobody else, and no key of the controller is with the worker.
    let key = |file: PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        text[text.find("-----BEGIN PRIVATE KEY").unwrap()..].to_owned()
    };
    let keys = [
        key(controller.join("authority.pem")),
        key(controller.join("controller.pem")),
        key(worker.join("worker.pem")),
    ];
    assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[0] != keys[2]);
    std::fs::set_permissions(worker.join("worker.pem"), std::fs::Permissions::from_mode(0o644))
        .unwrap();
    let failure = WorkerListener::bind_tls("127.0.0.1:0".parse().unwrap(), &worker).unwrap_err();
    assert!(text(&failure).contains("chmod 600"), "{failure:?}");
}

#[test]
fn a_token_works_once() {
    let place = Place::new();
    let (token, waiting) = invite(&place, options());
    enrol_worker(&token, &place.worker(), &[]).unwrap();
    waiting.join().unwrap().0.unwrap();
    let before = std::fs::read(place.worker().join("worker.pem")).unwrap();
    // Nobody waits any more.
    let failure = enrol_worker(&token, &place.worker(), &[]).unwrap_err();
    assert!(text(&failure).contains("another invitation"), "{failure:?}");
    // Somebody waits at the same place for another worker.
    let place_of = |token: &str| token.split('/').nth(2).unwrap().to_owned();
    let listen = place_of(&token).parse().unwrap();
    let (other, waiting) = invite(&place, InvitationOptions { listen, ..options() });
    assert_eq!(place_of(&token), place_of(&other));
    let failure = enrol_worker(&token, &place.worker(), &[]).unwrap_err();
    assert!(text(&failure).contains("it was used, has expired"), "{failure:?}");
    assert_eq!(std::fs::read(place.worker().join("worker.pem")).unwrap(), before);
    enrol_worker(&other, &place.worker(), &["b.example".to_owned()]).unwrap();
    let (done, refused) = waiting.join().unwrap();
    assert_eq!(done.unwrap().names, ["b.example"]);
    assert!(refused[0].contains("127.0.0.1") && refused[0].contains("token"), "{refused:?}");
    assert_eq!(refused.len(), 1);
    for one in [&token, &other] {
        assert!(!format!("{failure:?}{refused:?}").contains(one.rsplit('/').next().unwrap()));
    }
}

#[test]
fn wrong_tokens_are_refused_and_counted() {
    let place = Place::new();
    let (token, waiting) = invite(&place, options());
    let (head, secret) = token.rsplit_once('/').unwrap();
    let wrong = |first: u8| format!("{head}/{first:02x}{}", &secret[2..]);
    let mine = u8::from_str_radix(&secret[..2], 16).unwrap();
    for other in 1..=5 {
        let failure = enrol_worker(&wrong(mine ^ other), &place.worker(), &[]).unwrap_err();
        assert!(text(&failure).contains("refused this worker"), "{failure:?}");
        assert!(!format!("{failure:?}").contains(&secret[2..]));
    }
    let (done, refused) = waiting.join().unwrap();
    assert!(done.unwrap_err().message.contains("wrong tokens"));
    assert_eq!(refused.len(), 5);
    assert!(!format!("{refused:?}").contains(&secret[2..]));
    assert!(!place.worker().join("worker.pem").exists());
    // With the fingerprint of another authority, the worker sends nothing to the server.
    let (token, waiting) = invite(&place, options());
    let mut parts: Vec<&str> = token.split('/').collect();
    let other = "0".repeat(64);
    parts[4] = &other;
    let failure = enrol_worker(&parts.join("/"), &place.worker(), &[]).unwrap_err();
    assert!(failure.message.contains("its authority is not the one in the token"), "{failure:?}");
    let failure = enrol_worker(&token[..token.len() - 1], &place.worker(), &[]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Usage);
    enrol_worker(&token, &place.worker(), &[]).unwrap();
    assert!(waiting.join().unwrap().0.is_ok());
}

#[test]
fn a_token_expires() {
    let place = Place::new();
    let short = InvitationOptions { valid_for: Duration::from_secs(1), ..options() };
    let (token, waiting) = invite(&place, short);
    let (done, _) = waiting.join().unwrap();
    assert!(text(&done.unwrap_err()).contains("expired"));
    std::thread::sleep(Duration::from_millis(1100));
    let failure = enrol_worker(&token, &place.worker(), &[]).unwrap_err();
    assert!(failure.message.contains("the token expired on"), "{failure:?}");
    assert!(failure.help.unwrap().contains("another invitation"));
    for valid_for in [Duration::ZERO, 2 * DAY] {
        let options = InvitationOptions { valid_for, ..options() };
        assert!(Invitation::open(&place.controller(), options).is_err());
    }
}

/// A worker cannot have the name that the controller has while it enrols others: it could take their secrets.
#[test]
fn some_names_are_refused() {
    let place = Place::new();
    for name in ["*", "*.example", "a b", "", "controller.ssdyno.invalid", "X.INVALID", "a/b"] {
        let failure = enrol_worker("ssdyno-invitation://", &place.worker(), &[name.to_owned()]);
        assert!(failure.is_err());
        let options = InvitationOptions { names: vec![name.to_owned()], ..options() };
        let failure = Invitation::open(&place.controller(), options).unwrap_err();
        assert!(failure.message.contains("cannot be issued for the name"), "{failure:?}");
    }
    // What the controller decides, a worker cannot widen.
    let names = vec!["127.0.0.1".to_owned()];
    let (token, waiting) = invite(&place, InvitationOptions { names: names.clone(), ..options() });
    let done = enrol_worker(&token, &place.worker(), &["b.example".to_owned()]).unwrap();
    assert_eq!((&done.names, waiting.join().unwrap().0.unwrap().names), (&names, names.clone()));
}

#[test]
fn garbage_ends_no_invitation() {
    let place = Place::new();
    let (token, waiting) = invite(&place, options());
    let address = token.split('/').nth(2).unwrap().to_owned();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 300], b""] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(bytes).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // A silent client does not keep others from enrolling.
    let silent = TcpStream::connect(&address).unwrap();
    enrol_worker(&token, &place.worker(), &[]).unwrap();
    let (done, refused) = waiting.join().unwrap();
    assert!(done.is_ok());
    assert_eq!(refused.len(), 3, "{refused:?}");
    drop(silent);
}

fn past() -> (SystemTime, SystemTime) {
    let now = SystemTime::now();
    (now - 40 * DAY, now - 10 * DAY)
}

fn present() -> (SystemTime, SystemTime) {
    let now = SystemTime::now();
    (now - DAY, now + DAY)
}

/// A worker whose certificate ends while it goes on: it started with `good`.
fn with_its_certificate(
    place: &Place,
    dates: (SystemTime, SystemTime),
) -> Result<WorkerListener, Failure> {
    let file = place.worker().join("worker.pem");
    forge(&place.controller(), &file, ExtendedKeyUsagePurpose::ServerAuth, dates);
    WorkerListener::bind_tls("127.0.0.1:0".parse().unwrap(), &place.worker())
}

#[test]
fn expired_certificates_are_named_with_their_date() {
    let place = Place::new();
    enrolled(&place);
    let failure = with_its_certificate(&place, past()).unwrap_err();
    assert!(failure.message.contains("this worker expired on"), "{failure:?}");
    assert!(failure.help.unwrap().contains("enrol this worker again"));
    // It ends while the worker listens.
    let soon = SystemTime::now() + Duration::from_secs(2);
    let running = Running::on(with_its_certificate(&place, (past().0, soon)).unwrap());
    let host = format!("tls://{}", running.address);
    std::thread::sleep(Duration::from_millis(3100));
    let failure = run(&host, &place.controller()).unwrap_err();
    assert!(
        failure.message.contains(&host) && failure.message.contains("expired on"),
        "{failure:?}"
    );
    assert!(text(&failure).contains("enrol this worker again"), "{failure:?}");
    // The controller's own.
    let file = place.controller().join("controller.pem");
    forge(&place.controller(), &file, ExtendedKeyUsagePurpose::ClientAuth, past());
    let failure = run(&host, &place.controller()).unwrap_err();
    assert!(failure.message.contains("this controller expired on"), "{failure:?}");
    assert!(failure.message.contains(&host) && text(&failure).contains("renews"), "{failure:?}");
    // An invitation renews it, and a new token the worker's.
    drop(running);
    enrolled(&place);
    let running = Running::new(&place.worker());
    run(&format!("tls://{}", running.address), &place.controller()).unwrap();
}

#[test]
fn another_authority_is_refused_by_both_ends() {
    let (place, other) = (Place::new(), Place::new());
    enrolled(&place);
    enrolled(&other);
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    let failure = run(&host, &other.controller()).unwrap_err();
    assert!(failure.message.contains(&host), "{failure:?}");
    assert!(failure.message.contains("another authority"), "{failure:?}");
    // One that trusts the authority of the worker, and has a certificate of another.
    let mixed = tempfile::tempdir().unwrap();
    let text_of =
        |place: &Place| std::fs::read_to_string(place.controller().join("controller.pem")).unwrap();
    let own = text_of(&other);
    let (pem, _) = authority(&place.controller());
    let begin = "-----BEGIN CERTIFICATE-----";
    let second = own.rfind(begin).unwrap();
    let key = own.find("-----BEGIN PRIVATE KEY").unwrap();
    let file = mixed.path().join("controller.pem");
    std::fs::write(&file, format!("{}{pem}{}", &own[..second], &own[key..])).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let failure = run(&host, mixed.path()).unwrap_err();
    assert!(failure.message.contains("does not know the authority"), "{failure:?}");
    assert!(running.refused.lock().unwrap().iter().any(|why| why.contains("another authority")));
}

#[test]
fn a_worker_commands_no_other_worker() {
    let place = Place::new();
    enrolled(&place);
    let running = Running::new(&place.worker());
    let host = format!("tls://{}", running.address);
    let thief = tempfile::tempdir().unwrap();
    let file = thief.path().join("controller.pem");
    std::fs::copy(place.worker().join("worker.pem"), &file).unwrap();
    let failure = run(&host, thief.path()).unwrap_err();
    assert!(failure.message.contains(&host), "{failure:?}");
    assert!(failure.message.contains("not a controller certificate"), "{failure:?}");
    assert!(running.refusal().contains("not a controller certificate"));
    // A controller is not a worker either.
    drop(running);
    std::fs::copy(place.controller().join("controller.pem"), place.worker().join("worker.pem"))
        .unwrap();
    let running = Running::new(&place.worker());
    let failure = run(&format!("tls://{}", running.address), &place.controller()).unwrap_err();
    assert!(failure.message.contains("not a worker certificate"), "{failure:?}");
}

#[test]
fn names_and_missing_identities_are_told() {
    let place = Place::new();
    let failure = run("tls://127.0.0.1:1", &place.controller()).unwrap_err();
    assert!(failure.message.starts_with("tls://127.0.0.1:1: "), "{failure:?}");
    assert!(text(&failure).contains("invite a worker first"), "{failure:?}");
    let failure =
        WorkerListener::bind_tls("0.0.0.0:0".parse().unwrap(), &place.worker()).unwrap_err();
    assert!(text(&failure).contains("enrol the worker first"), "{failure:?}");
    let (token, waiting) = invite(&place, options());
    enrol_worker(&token, &place.worker(), &["b.example".to_owned(), "192.0.2.1".to_owned()])
        .unwrap();
    waiting.join().unwrap().0.unwrap();
    let running = Running::new(&place.worker());
    let failure = run(&format!("tls://{}", running.address), &place.controller()).unwrap_err();
    assert!(failure.message.contains("under other names: b.example, 192.0.2.1"), "{failure:?}");
}

#[test]
fn plain_and_tls_do_not_mix() {
    let place = Place::new();
    enrolled(&place);
    let running = Running::new(&place.worker());
    let failure = run(&running.address.to_string(), &place.controller()).unwrap_err();
    assert!(failure.message.contains("only connections with TLS"), "{failure:?}");
    let help = failure.help.unwrap();
    assert!(help.contains(&format!("tls://{}", running.address)), "{help}");
    assert!(running.refusal().contains("does not use TLS"), "{}", running.refusal());
    drop(running);
    let plain = Running::on(WorkerListener::bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let host = format!("tls://{}", plain.address);
    let failure = run(&host, &place.controller()).unwrap_err();
    assert!(failure.message.contains(&format!("{host} does not use TLS")), "{failure:?}");
    // No server, and a silent server.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = format!("tls://{}", free.local_addr().unwrap());
    let failure = run(&host, &place.controller()).unwrap_err();
    assert!(failure.message.contains("does not answer"), "{failure:?}");
    drop(free);
    let failure = run(&host, &place.controller()).unwrap_err();
    assert!(failure.message.contains("cannot reach"), "{failure:?}");
}

#[test]
fn only_present_certificates_pass() {
    let place = Place::new();
    enrolled(&place);
    let running = Running::on(with_its_certificate(&place, present()).unwrap());
    run(&format!("tls://{}", running.address), &place.controller()).unwrap();
    let tomorrow = (SystemTime::now() + DAY, SystemTime::now() + 2 * DAY);
    let failure = with_its_certificate(&place, tomorrow).unwrap_err();
    assert!(text(&failure).contains("clock"), "{failure:?}");
}

/// The worker hears why it is refused, and the invitation waits on.
#[test]
fn a_damaged_list_of_revoked_certificates_does_not_spend_the_token() {
    let place = Place::new();
    let (token, waiting) = invite(&place, options());
    let list = place.controller().join("revoked.pem");
    for damaged in [&[0xff; 8][..], b"no list"] {
        std::fs::write(&list, damaged).unwrap();
        let failure = enrol_worker(&token, &place.worker(), &[]).unwrap_err();
        assert!(failure.message.contains("revoked.pem"), "{failure}");
    }
    std::fs::remove_file(&list).unwrap();
    enrol_worker(&token, &place.worker(), &[]).unwrap();
    waiting.join().unwrap().0.unwrap();
}
