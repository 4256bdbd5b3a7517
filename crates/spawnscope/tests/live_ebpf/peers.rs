//! Waits for sockets of the same machine. The server is this test, which is not recorded: a wait for it has its address and its name.

use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::recording::report;
use crate::support::run::{Record, spawnscope};
use crate::support::{apply, live_test};

/// How long the server takes to answer.
const ANSWER: Duration = Duration::from_millis(150);
/// Requests of a client, each through a socket of its own.
const REQUESTS: usize = 2;

#[apply(live_test)]
#[needs(Ebpf)]
fn a_wait_for_a_local_server_names_its_address_and_the_server() {
    names_the_server("127.0.0.1");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_wait_for_a_local_server_by_ipv6_names_its_address_and_the_server() {
    if TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    names_the_server("::1");
}

fn names_the_server(ip: &str) {
    let listener = TcpListener::bind((ip, 0)).expect("a free port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        for _ in 0..REQUESTS {
            let (mut client, _) = listener.accept().expect("a client");
            thread::sleep(ANSWER);
            client.write_all(b"answer\n").expect("the client reads");
        }
    });
    let script =
        "for ((i = 0; i < $3; i++)); do exec 3<>\"/dev/tcp/$1/$2\"; read -r line <&3; echo \"$line\"; exec 3<&-; done";
    let record = Record::new();
    let (port, requests) = (address.port().to_string(), REQUESTS.to_string());
    let finished = record
        .run(["bash", "-c", script, "client", ip, &port, &requests])
        .expect_code(0);
    server.join().expect("the server");
    assert_eq!(
        finished.output().lines().filter(|line| *line == "answer").count(),
        REQUESTS
    );
    let name = std::fs::read_to_string("/proc/self/comm").expect("a name");
    let report = report(&record.file());
    let waits = report["waits"].as_array().expect("a list");
    let of_peer = |wait: &&Value| wait["object"]["path"] == address.to_string().as_str();
    let wait = waits
        .iter()
        .find(of_peer)
        .unwrap_or_else(|| panic!("no {address} in {waits:?}"));
    assert_eq!(wait["on"][0]["process"], name.trim_end(), "{wait}");
    let least = ANSWER.as_nanos() as u64 * REQUESTS as u64;
    assert!(wait["total_ns"].as_u64().expect("a sum") >= least * 9 / 10, "{wait}");
    let text = spawnscope(["report".as_ref(), "--full".as_ref(), record.file().as_os_str()])
        .expect_code(0)
        .output();
    assert!(text.contains(&format!("on {address} from")), "{text}");
}
