//! Waits for sockets on the same machine. The server is this test, which is not recorded. A wait
//! for the server must name the server's address and this process.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::support::prelude::*;

/// The time that the server takes to answer.
const ANSWER_TIME: Duration = Duration::from_millis(150);
/// Requests of a client, each through a socket of its own.
const REQUESTS: usize = 2;

#[apply(live_test)]
fn a_wait_for_a_local_server_names_the_server_and_its_address() {
    assert_wait_names_server("127.0.0.1");
    if TcpListener::bind("[::1]:0").is_ok() {
        assert_wait_names_server("::1");
    }
}

/// A server that takes a while to answer each request.
struct Server {
    address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Server {
    fn start(ip: &str) -> Server {
        let listener = TcpListener::bind((ip, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let thread = thread::spawn(move || {
            for _ in 0..REQUESTS {
                let (mut client, _) = listener.accept().expect("a client");
                thread::sleep(ANSWER_TIME);
                client.write_all(b"answer\n").expect("the client reads");
            }
        });
        Server { address, thread }
    }

    fn port(&self) -> String {
        self.address.port().to_string()
    }

    fn finish(self) -> SocketAddr {
        self.thread.join().expect("the server");
        self.address
    }
}

fn assert_answered(finished: &Finished) {
    let output = finished.output();
    let answers = output.lines().filter(|line| *line == "answer");
    assert_eq!(answers.count(), REQUESTS, "{output}");
}

/// Returns all waits for an address.
fn waits_for(record: &Record, address: SocketAddr) -> Vec<Value> {
    let report = report(&record.file());
    let waits = report["waits"].as_array().expect("a list").iter();
    let path = address.to_string();
    let waits = waits.filter(|wait| wait["object"]["path"] == path.as_str());
    waits.cloned().collect()
}

fn assert_names_this_process(wait: &Value) {
    let name = std::fs::read_to_string("/proc/self/comm").expect("a name");
    assert_eq!(wait["on"][0]["process"], name.trim_end(), "{wait}");
    let answers_ns = ANSWER_TIME.as_nanos() as u64 * REQUESTS as u64;
    assert!(total_ns(wait) >= answers_ns * 9 / 10, "{wait}");
}

fn total_ns(wait: &Value) -> u64 {
    wait["total_ns"].as_u64().expect("a sum")
}

fn assert_wait_names_server(ip: &str) {
    let server = Server::start(ip);
    let script =
        "for ((i = 0; i < $3; i++)); do exec 3<>\"/dev/tcp/$1/$2\"; read -r line <&3; echo \"$line\"; exec 3<&-; done";
    let record = Record::new();
    let (port, requests) = (server.port(), REQUESTS.to_string());
    let command = ["bash", "-c", script, "client", ip, &port, &requests];
    assert_answered(&record.run(command).expect_code(0));
    let address = server.finish();
    let waits = waits_for(&record, address);
    assert_names_this_process(waits.first().unwrap_or_else(|| panic!("no {address}")));
    let text = read(&["report", "--full"], &record.file()).output();
    assert_contains(&text, [&format!("on {address} from")]);
}

/// A Python client with the arguments CALL LIMIT PORT...: it waits for an answer of each of these
/// servers, and for an empty pipe, in the call that CALL names, with a time limit of LIMIT seconds.
const CLIENT: &str = r#"
import asyncio, os, select, socket, sys
call, limit, ports = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
def by_poll(files):
    poll = select.poll()
    for file in files: poll.register(file, select.POLLIN)
    return poll.poll(limit * 1000)
def by_select(files):
    return select.select(files, [], [], limit)[0]
def by_select_to_write(files):
    # The socket buffers become full, since the servers do not read.
    for file in files[2:]:
        file.setblocking(False)
        try:
            while True: file.send(bytes(1 << 16))
        except BlockingIOError: file.setblocking(True)
        # The server has already answered and closed the connection.
        except ConnectionError: pass
    return select.select(files[:2], files[2:], [], limit)[0]
def by_epoll(files):
    epoll = select.epoll()
    for file in files: epoll.register(file, select.EPOLLIN)
    return epoll.poll(limit)
async def by_loop(port):
    reader, _ = await asyncio.open_connection("127.0.0.1", port)
    print((await reader.readline()).decode().strip())
if call == "loop":
    asyncio.run(by_loop(ports[0]))
    asyncio.run(by_loop(ports[0]))
    sys.exit()
wait = {"poll": by_poll, "select": by_select, "write": by_select_to_write, "epoll": by_epoll}[call]
quiet = os.pipe()[0]
for _ in range(2):
    sockets = [socket.create_connection(("127.0.0.1", port)) for port in ports]
    while not wait([quiet, *sockets]): pass
    for connection in sockets:
        try: print(connection.recv(16).decode().strip())
        # The server closed the connection without reading everything.
        except ConnectionError: pass
"#;
const PYTHON: &str = "/usr/bin/python3";
/// A time limit in seconds that is not reached.
const LONG: &str = "60";

fn record_client(call: &str, limit: &str, servers: &[&Server]) -> (Record, Finished) {
    let record = Record::new();
    let ports: Vec<String> = servers.iter().map(|server| server.port()).collect();
    let command = [PYTHON, "-c", CLIENT, call, limit].into_iter();
    let finished = record.run(command.chain(ports.iter().map(String::as_str)));
    (record, finished.expect_code(0))
}

#[apply(live_test)]
#[needs(Python)]
fn a_wait_for_one_of_several_files_names_the_server_of_the_only_socket() {
    for (call, syscalls) in [
        ("poll", ["poll", "ppoll"]),
        ("select", ["select", "pselect6"]),
        ("epoll", ["epoll_wait", "epoll_pwait"]),
        ("loop", ["epoll_wait", "epoll_pwait"]),
    ] {
        let server = Server::start("127.0.0.1");
        let (record, finished) = record_client(call, LONG, &[&server]);
        assert_answered(&finished);
        let waits = waits_for(&record, server.finish());
        let wait = waits.iter().find(|wait| syscalls.iter().any(|syscall| wait["syscall"] == *syscall));
        assert_names_this_process(wait.unwrap_or_else(|| panic!("{call}: {waits:?}")));
    }
}

#[apply(live_test)]
#[needs(Python)]
fn a_wait_that_timed_out_is_not_for_the_server() {
    for call in ["poll", "select", "epoll"] {
        let server = Server::start("127.0.0.1");
        // Two of the waits for each answer time out.
        let limit = ANSWER_TIME.mul_f64(0.4).as_secs_f64().to_string();
        let (record, finished) = record_client(call, &limit, &[&server]);
        assert_answered(&finished);
        let waits = waits_for(&record, server.finish());
        let sum: u64 = waits.iter().map(total_ns).sum();
        let answers_ns = ANSWER_TIME.as_nanos() as u64 * REQUESTS as u64;
        let range = 1..answers_ns / 2;
        assert!(range.contains(&sum), "{call}: {sum} is not in {range:?}: {waits:?}");
    }
}

#[apply(live_test)]
#[needs(Python)]
fn a_wait_for_two_servers_names_neither() {
    for call in ["poll", "select", "write", "epoll"] {
        let servers = [Server::start("127.0.0.1"), Server::start("127.0.0.1")];
        let (record, _) = record_client(call, LONG, &[&servers[0], &servers[1]]);
        for server in servers {
            let waits = waits_for(&record, server.finish());
            // The second answer may be waited for in recv.
            assert_eq!(waits.iter().find(|wait| wait["syscall"] != "recvfrom"), None, "{call}");
        }
    }
}
