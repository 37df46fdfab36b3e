//! `counters --serve`: hostile clients do not prevent others from reading, and cost little.
use core::time::Duration;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{ChildStderr, Command};

use ipc_testkit::FakeRuntime;

use crate::counters::running;
use crate::tool::{Killed, TOOL, program, run, tool, until};

/// A tool that serves the counters of a runtime.
struct Served {
    child: Killed,
    address: String,
    /// The end of standard error, which the tool writes to.
    _stderr: BufReader<ChildStderr>,
    _runtime: FakeRuntime,
}

impl Served {
    fn start(options: &[&str]) -> Self {
        Self::start_with(options, &[])
    }

    /// Starts the tool by a command that runs its arguments.
    fn start_with(options: &[&str], wrapper: &[&str]) -> Self {
        let runtime = running();
        let socket = runtime.path().to_str().unwrap().to_owned();
        let fixed = ["counters", "--socket", &socket, "Lab-Counters"];
        let args = [
            &fixed[..],
            if options.contains(&"--serve") { &[] } else { &["--serve", "127.0.0.1:0"] },
            options,
        ];
        let mut command = match wrapper {
            [] => tool(&args.concat()),
            [first, rest @ ..] => {
                let mut command: Command = program(first);
                command.args(rest).arg(TOOL).args(args.concat()).stderr(std::process::Stdio::piped());
                command
            }
        };
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut note = String::new();
        stderr.read_line(&mut note).unwrap();
        let address = note.trim().strip_prefix("note: serving http://").expect(&note);
        let address = address.strip_suffix("/metrics").unwrap().to_owned();
        let served = Self { child: Killed(child), address, _stderr: stderr, _runtime: runtime };
        until("no sample is served", || served.scrape().contains("\ndotnet_lab_counters_poll{"));
        served
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes on a new connection, which stays open. The server may close it before it has read them.
    fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        stream
    }

    /// Returns everything that the server answers to a request until it closes the connection.
    fn answer(&self, request: &str) -> String {
        read(self.send(request.as_bytes()))
    }

    fn scrape(&self) -> String {
        let answer = self.answer("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{head}");
        answer
    }

    #[cfg(target_os = "linux")]
    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.0.id())).unwrap().count()
    }

    #[cfg(target_os = "linux")]
    fn status(&self, field: &str) -> usize {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.0.id())).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

#[track_caller]
fn read(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Waits until the server has closed a connection, in whatever way.
fn until_closed(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => panic!("still open"),
            Err(_) => return,
        }
    }
}

const GET: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// What a hostile client sends, and then keeps its connection open.
fn hostile_inputs() -> Vec<Vec<u8>> {
    let with =
        |field: &str| format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n").into_bytes();
    vec![
        with("Content-Length: 18446744073709551615"),
        with("Content-Length: 1000000000000000"),
        with("Content-Length: 4000000000"),
        with("Content-Length: 2000"),
        with("Content-Length: -1"),
        with("Expect: 100-continue\r\nContent-Length: 5"),
        with("Connection: upgrade\r\nUpgrade: h2c"),
        with("Transfer-Encoding: chunked\r\n\r\nffffffffffffffff"),
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n".to_vec(),
        GET.repeat(2_000).into_bytes(),
        b"GET /".to_vec(),
        format!("GET /{}", "x".repeat(100_000)).into_bytes(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03".to_vec(),
        b"\r\n\r\n\r\n".to_vec(),
        vec![0xff; 10_000],
        GET.as_bytes().to_vec(),
        Vec::new(),
    ]
}

#[test]
fn every_hostile_client_leaves_the_server_to_others() {
    let served = Served::start(&[]);
    let mut open = Vec::new();
    for input in hostile_inputs() {
        open.push(served.send(&input));
        served.scrape();
    }
    // Resets: a connection that is closed with unread input sends one.
    for _ in 0..50 {
        drop(served.send(GET.repeat(10).as_bytes()));
    }
    served.scrape();
}

/// There are more clients than places, twice. Each scrape succeeds, and the tool has as many threads as before.
#[cfg(target_os = "linux")]
#[test]
fn a_scraper_gets_through_beside_hundreds_of_hostile_clients() {
    let served = Served::start(&[]);
    let (threads, descriptors, memory) =
        (served.status("Threads:"), served.descriptors(), served.status("VmRSS:"));
    let inputs = hostile_inputs();
    let mut open = Vec::new();
    for n in 0..1_500 {
        open.push(served.send(&inputs[n % inputs.len()]));
        if n % 50 == 0 {
            served.scrape();
        }
    }
    assert_eq!(served.status("Threads:"), threads);
    assert!(served.descriptors() <= descriptors + 1_030, "{}", served.descriptors());
    let grown = served.status("VmHWM:").saturating_sub(memory);
    assert!(grown < 16 << 10, "{grown} KiB");
    drop(open);
    until("the connections stay", || served.descriptors() <= descriptors + 2);
    served.scrape();
}

#[cfg(target_os = "linux")]
#[test]
fn exhausted_descriptors_delay_no_client() {
    let served = Served::start_with(&[], &["sh", "-c", "ulimit -n 48; exec \"$0\" \"$@\""]);
    for _ in 0..2 {
        let open: Vec<TcpStream> = (0..150).map(|_| served.connect()).collect();
        served.scrape();
        let kept: Vec<TcpStream> = (0..150).map(|_| served.send(GET.as_bytes())).collect();
        served.scrape();
        drop((open, kept));
        served.scrape();
    }
}

#[test]
fn an_answer_is_not_lost() {
    let served = Served::start(&[]);
    // The sending half ends before the answer.
    let stream = served.send(GET.as_bytes());
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(read(stream).starts_with("HTTP/1.1 200 "));
    // A body that the server does not read.
    let head = "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n";
    let mut stream = served.connect();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b'x'; 3_000_000]).unwrap();
    assert!(read(stream).starts_with("HTTP/1.1 405 "));
    // Several requests on one connection, in pieces.
    let mut stream = served.connect();
    for byte in GET.repeat(3).as_bytes().chunks(7) {
        stream.write_all(byte).unwrap();
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(stream).matches("HTTP/1.1 200 OK").count(), 3);
    let head = served.answer("HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n") && !head.contains("\r\nContent-Length: 0\r\n"), "{head}");
}

#[test]
fn a_silent_client_is_disconnected() {
    let served = Served::start(&[]);
    let (silent, slow) = (served.connect(), served.send(b"GET /metrics HT"));
    until_closed(silent);
    assert!(read(slow).starts_with("HTTP/1.1 408 "));
}

#[test]
fn only_known_names_of_the_server_are_answered() {
    let served = Served::start(&["--allow-host", "Metrics.Example.", "--allow-host", "other"]);
    let status = |host: &str| {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        served.answer(&request)
    };
    let port = served.address.rsplit_once(':').unwrap().1;
    for host in [
        "127.0.0.1",
        "[::1]:80",
        "LocalHost.",
        "metrics.example",
        "METRICS.EXAMPLE.:1",
        "other",
        &served.address,
    ] {
        assert!(status(host).starts_with("HTTP/1.1 200 "), "{host}");
    }
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1.evil.example"] {
        let answer = status(host);
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("--allow-host NAME"),
            "{host}: {answer}"
        );
        assert!(!answer.contains("dotnet_lab_counters"), "{answer}");
    }
    let named = Served::start(&["--serve", "localhost:0"]);
    assert!(named.scrape().contains("dotnet_lab_counters_poll"));
    run(&["counters", "1", "--allow-host", "a"]).fails(2, "--serve");
    run(&["counters", "1", "--serve", "127.0.0.1:0", "--allow-host", "a:80"]).fails(2, "no port");
}

#[test]
fn an_address_that_cannot_be_served() {
    let runtime = running();
    let socket = runtime.path().to_str().unwrap();
    let serve = |address: &str| run(&["counters", "--socket", socket, "--serve", address]);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    serve(&taken).fails(1, &format!("cannot serve at {taken}: "));
    serve("192.0.2.1:80").fails(1, "cannot serve at 192.0.2.1:80: ");
    for text in ["9184", "127.0.0.1", "127.0.0.1:x", "http://127.0.0.1:1"] {
        serve(text).fails(2, "an address is HOST:PORT, as 127.0.0.1:9184");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_tool_beside_clients() {
    let mut served = Served::start(&[]);
    let _open: Vec<TcpStream> = hostile_inputs().iter().map(|input| served.send(input)).collect();
    let process = rustix::process::Pid::from_child(&served.child.0);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    until("the tool does not end", || served.child.0.try_wait().unwrap().is_some());
}
