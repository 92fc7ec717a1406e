//! A worker that enrols, and the run on it over TLS: processes of their own.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};

use crate::common::Place;

/// A process that is killed with the test.
struct Waiting {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    line: String,
}

impl Waiting {
    /// Starts it, and waits for its first line.
    fn start(mut command: Command) -> Waiting {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Waiting { process, output, line: line.trim().to_owned() }
    }

    /// Its exit code and all that it printed but the first line.
    fn end(&mut self) -> (Option<i32>, String) {
        let code = self.process.wait().unwrap().code();
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        self.process.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (code, text)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The command of somebody whose configuration is in `home`.
fn command(place: &Place, home: &str, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("XDG_CONFIG_HOME", place.path().join(home));
    command
}

fn text(output: &Output) -> String {
    let parts = [&output.stdout, &output.stderr].map(|part| String::from_utf8_lossy(part));
    parts.concat()
}

/// Enrols with `token`, which is given on standard input.
fn enrol(place: &Place, token: &str) -> Output {
    let mut command = command(place, "worker", &["worker", "enrol", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(format!("{token}\n").as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn a_worker_enrols_listens_everywhere_and_runs() {
    let place = Place::new();
    let run = |hosts: &str| {
        let args = ["run", "sim:delay-100us", "--for", "50ms", "--keep", "none", "--json"];
        command(&place, "controller", &[&args[..], &["--hosts", hosts]].concat()).output().unwrap()
    };
    let listen = ["worker", "--listen", "0.0.0.0:0"];
    let output = command(&place, "worker", &listen).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("enrol the worker first"), "{}", text(&output));
    let output = run("tls://127.0.0.1:1");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("invite a worker first"), "{}", text(&output));
    let invite = ["controller", "invite", "--listen", "127.0.0.1:0", "--hosts-valid", "30"];
    let mut invitation = Waiting::start(command(&place, "controller", &invite));
    let token = invitation.line.clone();
    let secret = token.rsplit('/').next().unwrap();
    assert!(token.starts_with("ssdyno-invitation://127.0.0.1:") && secret.len() == 32, "{token}");
    let output = enrol(&place, &token);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("127.0.0.1") && !text(&output).contains(secret));
    let (code, told) = invitation.end();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("enrolled 127.0.0.1:") && !told.contains(secret), "{told}");
    // Once only.
    let output = enrol(&place, &token);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output);
    assert!(told.contains("make another invitation") && !told.contains(secret), "{told}");
    let mut worker = Waiting::start(command(&place, "worker", &listen));
    let port = worker.line.rsplit(':').next().unwrap().to_owned();
    let output = run(&format!("tls://127.0.0.1:{port}"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["requests"].as_u64().unwrap() > 100);
    let output = run(&format!("127.0.0.1:{port}"));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains(&format!("tls://127.0.0.1:{port}")), "{}", text(&output));
    // The identity of the worker does not make a controller of it.
    std::fs::create_dir_all(place.path().join("thief")).unwrap();
    std::fs::copy(
        place.path().join("worker/ssdyno/worker/worker.pem"),
        place.path().join("thief/controller.pem"),
    )
    .unwrap();
    let hosts = format!("tls://127.0.0.1:{port}");
    let told = place.fails(1, &["run", "null:", "--hosts", &hosts, "--identity", "thief"]);
    assert!(told.contains("not a controller certificate"), "{told}");
    worker.process.kill().unwrap();
    let (_, told) = worker.end();
    assert!(
        told.contains("does not use TLS") && told.contains("not a controller certificate"),
        "{told}"
    );
}

/// Invites and enrols a worker.
fn enrolled(place: &Place) {
    let invite = ["controller", "invite", "--listen", "127.0.0.1:0"];
    let mut invitation = Waiting::start(command(place, "controller", &invite));
    let output = enrol(place, &invitation.line);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(invitation.end().0, Some(0));
}

/// The port at which a process listens.
fn port(process: &Waiting) -> String {
    process.line.rsplit(':').next().unwrap().to_owned()
}

fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_prober_uses_the_certificate_of_the_worker_and_both_are_revoked() {
    let place = Place::new();
    let call = |args: &[&str]| command(&place, "controller", args).output().unwrap();
    enrolled(&place);
    let worker = Waiting::start(command(&place, "worker", &["worker", "--listen", "0.0.0.0:0"]));
    let prober = Waiting::start(command(&place, "worker", &["prober", "--listen", "0.0.0.0:0"]));
    let (host, watched) = (
        format!("tls://127.0.0.1:{}", port(&worker)),
        format!("tls://127.0.0.1:{}", port(&prober)),
    );
    let run = |probers: &str| {
        call(&[
            "run",
            "sim:delay-100us",
            "--for",
            "50ms",
            "--keep",
            "none",
            "--json",
            "--hosts",
            &host,
            "--probers",
            probers,
        ])
    };
    let result = json(&run(&watched));
    let systems = result["systems"].as_array().unwrap();
    let system = systems.iter().find(|system| system["name"] == watched.as_str()).unwrap();
    assert_eq!(system["is_worker"], false);
    assert!(!system["system"]["points"].as_array().unwrap().is_empty());
    // Without TLS it is not let in; a prober has to be enrolled to listen everywhere.
    let plain = watched.strip_prefix("tls://").unwrap();
    let output = run(plain);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains(&format!("name it as {watched}")), "{}", text(&output));
    let output = command(&place, "nobody", &["prober", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("enrol the worker first"), "{}", text(&output));

    let list = json(&call(&["controller", "list", "--json"]));
    let listed = &list["workers"][0];
    assert_eq!((&listed["state"], list["workers"].as_array().unwrap().len()), (&"valid".into(), 1));
    let table = text(&call(&["controller", "list"]));
    assert!(table.contains("127.0.0.1") && table.contains(listed["serial"].as_str().unwrap()));
    let output = call(&["controller", "revoke", "nobody.example"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("no enrolled worker is called `nobody.example`"));
    let output = call(&["controller", "revoke", "127.0.0.1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = call(&["controller", "revoke", "127.0.0.1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("was already revoked on"), "{}", text(&output));
    let list = json(&call(&["controller", "list", "--json"]));
    assert_eq!(list["workers"][0]["state"], "revoked");
    // Both ends of it: the worker, and a prober beside a worker without TLS.
    let output = run(&watched);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("revoked the certificate of the worker at"),
        "{}",
        text(&output)
    );
    let free = Waiting::start(command(&place, "nobody", &["worker", "--listen", "127.0.0.1:0"]));
    let here = format!("127.0.0.1:{}", port(&free));
    let output = call(&["run", "null:", "--for", "50ms", "--hosts", &here, "--probers", &watched]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output);
    assert!(told.contains("revoked the certificate") && told.contains(&watched), "{told}");
}

#[test]
fn an_invitation_says_what_it_cannot_do() {
    let place = Place::new();
    let refused = |args: &[&str]| {
        place.fails(2, &[&["controller", "invite", "--identity", "a"], args].concat())
    };
    assert!(refused(&["--valid-for", "2d"]).contains("1 s to 24 h"));
    assert!(refused(&["--hosts-valid", "0"]).contains("1 to 3650 days"));
    assert!(refused(&["--name", "*"]).contains("cannot be issued for the name"));
    assert!(refused(&["--listen", "192.0.2.1:1"]).contains("cannot listen"));
    assert!(!place.path().join("a").exists(), "nothing is made for what is refused");
    let told = place.fails(2, &["worker", "enrol", "ssdyno-invitation://a:1/2/3/4deadbeef"]);
    assert!(told.contains("not a complete") && !told.contains("deadbeef"), "{told}");
    let told = place.fails(
        1,
        &[
            "controller",
            "invite",
            "--identity",
            "a",
            "--listen",
            "127.0.0.1:0",
            "--valid-for",
            "1s",
        ],
    );
    assert!(told.contains("expired"), "{told}");
}

/// Somebody has a copy of the controller's key. After a renewal the worker refuses it, once the controller has
/// connected with the new certificate.
#[test]
fn a_stolen_certificate_of_the_controller_ends_with_a_renewal() {
    let place = Place::new();
    enrolled(&place);
    let controller = place.path().join("controller/ssdyno/controller");
    let thief = place.path().join("thief");
    std::fs::create_dir_all(&thief).unwrap();
    std::fs::copy(controller.join("controller.pem"), thief.join("controller.pem")).unwrap();
    let worker = Waiting::start(command(&place, "worker", &["worker", "--listen", "0.0.0.0:0"]));
    let host = format!("tls://127.0.0.1:{}", port(&worker));
    let run = |more: &[&str]| {
        let args = ["run", "null:", "--for", "20ms", "--keep", "none", "--json", "--hosts", &host];
        command(&place, "controller", &[&args[..], more].concat()).output().unwrap()
    };
    json(&run(&["--identity", "thief"]));
    let told = command(&place, "controller", &["controller", "renew", "--json"]).output().unwrap();
    assert!(json(&told)["revoked_serial"].as_str().is_some_and(|serial| !serial.is_empty()));
    json(&run(&[]));
    let output = run(&["--identity", "thief"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("revoked"), "{}", text(&output));
    json(&run(&[]));
}
