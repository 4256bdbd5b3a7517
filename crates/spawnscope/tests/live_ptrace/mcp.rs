//! `mcp --allow-record`: a command that a client records does not see the protocol, and ends when
//! the call is cancelled.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::run::{SPAWNSCOPE, await_some};
use crate::support::{apply, live_test};

#[apply(live_test)]
fn a_client_records_commands_and_cancels_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["mcp", "--allow-record"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().expect("a server");
    let mut requests = server.stdin.take().expect("its input");
    let mut messages = BufReader::new(server.stdout.take().expect("its output")).lines();
    let mut record = |id: u32, script: &str| {
        let arguments =
            json!({ "directory": directory.path(), "collector": "ptrace", "command": ["sh", "-c", script] });
        let params = json!({ "name": "record", "arguments": arguments });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        writeln!(requests, "{request}").expect("the server reads");
    };
    record(1, "cat; echo output; ls /nonexistent; exit 3");
    let response: Value = serde_json::from_str(&messages.next().expect("a line").expect("a response")).expect("JSON");
    let text = response["result"]["content"][0]["text"].as_str().expect("a text");
    for part in ["output\n", "/nonexistent", "recorded 3 launches to spawnscope.db", "exited with status 3"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(response["result"]["isError"], false);
    record(2, "echo $$ >started; exec sleep 60");
    let pid = await_some("the command", || {
        let text = std::fs::read_to_string(directory.path().join("started")).ok()?;
        text.strip_suffix('\n').map(str::to_owned)
    });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    writeln!(requests, "{cancel}").expect("the server reads");
    let since = Instant::now();
    drop(requests);
    assert!(messages.next().is_none(), "a cancelled call has no response");
    assert!(server.wait().expect("the server ends").success() && since.elapsed() < Duration::from_secs(20));
    assert!(!std::path::Path::new("/proc").join(&pid).exists(), "the command {pid} has ended");
}
