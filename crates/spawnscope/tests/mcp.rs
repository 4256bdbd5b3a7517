//! `mcp`, spoken to directly: what clients of old and new versions of the protocol send, and what
//! an agent gets. scripts/mcp-clients.sh does the same with the protocol's own clients. A named
//! pipe as the log of `import` stands for a call that never ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::directory::Directory;
use crate::stored::{AFTER, BEFORE};
use crate::texts::assert_contains;

/// A client and the server that it has started, in a directory of their own.
struct Client {
    directory: Directory,
    server: Child,
    requests: Option<ChildStdin>,
    messages: BufReader<ChildStdout>,
}

impl Client {
    fn start(options: &[&str]) -> Client {
        let directory = Directory::with(&[("before.db", BEFORE), ("after.db", AFTER)]);
        let mut command = directory.command(&[&["mcp"], options].concat());
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (requests, messages) = (server.stdin.take(), BufReader::new(server.stdout.take().unwrap()));
        Client { directory, server, requests, messages }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests.as_mut().unwrap(), "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.messages.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request and returns the response.
    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
        let response = self.receive();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(7)));
        response
    }

    /// Calls a tool. Returns whether it failed, and its text.
    fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].take();
        let texts = result["content"].as_array().unwrap().iter().map(|content| content["text"].as_str().unwrap());
        let text = texts.collect::<Vec<_>>().join("\n");
        assert!(text.chars().count() < 20_000, "{text}");
        (result["isError"].as_bool().unwrap(), text)
    }

    fn answer(&mut self, tool: &str, arguments: &Value) -> Value {
        let (has_failed, text) = self.call(tool, arguments);
        assert!(!has_failed, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Starts a call that never ends, with id 8.
    fn start_endless_call(&mut self) {
        let log = self.directory.path("endless.log");
        nix::unistd::mkfifo(&log, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let params = json!({ "name": "import", "arguments": { "logs": [log] }, "_meta": { "progressToken": "token" } });
        self.send(&json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params }));
    }

    /// Closes the server's standard input, and waits until it has ended. Returns how long that
    /// took.
    fn end(mut self) -> Duration {
        drop(self.requests.take());
        let since = Instant::now();
        assert!(self.server.wait().unwrap().success());
        let mut rest = String::new();
        assert_eq!(self.messages.read_line(&mut rest).unwrap(), 0, "after the last response: {rest}");
        since.elapsed()
    }
}

#[test]
fn clients_of_every_version_of_the_protocol_are_answered() {
    let mut client = Client::start(&[]);
    for (requested, expected) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        let params = json!({ "protocolVersion": requested, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let result = client.request("initialize", &params)["result"].take();
        assert_eq!(result["protocolVersion"], expected);
        assert_eq!(
            (&result["serverInfo"]["name"], &result["capabilities"]),
            (&json!("spawnscope"), &json!({ "tools": {} }))
        );
    }
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let meta = |version: &str| json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version } });
    let discovered = client.request("server/discover", &meta("2026-07-28"))["result"].take();
    assert_eq!(
        (&discovered["supportedVersions"][0], &discovered["resultType"]),
        (&json!("2026-07-28"), &json!("complete"))
    );
    let refused = client.request("tools/list", &meta("2030-01-01"))["error"].take();
    assert_eq!((&refused["code"], &refused["data"]["requested"]), (&json!(-32022), &json!("2030-01-01")));
    assert_eq!(client.request("ping", &json!({}))["result"]["resultType"], "complete");
    assert_eq!(client.request("prompts/list", &json!({}))["error"]["code"], -32601);
    writeln!(client.requests.as_mut().unwrap(), "no JSON").unwrap();
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.end();
}

#[test]
fn tools_answer_what_the_verbs_print() {
    let mut client = Client::start(&[]);
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].take();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["record", "report", "advise", "whatif", "diff", "import"]);
    assert_eq!(tools[1]["inputSchema"]["properties"]["by"]["enum"][0], "command");
    assert_eq!(tools[4]["inputSchema"]["required"], json!(["before"]));
    let report = client.answer("report", &json!({ "file": "before.db", "by": "line" }));
    assert_eq!((&report["launches"], &report["by"]), (&json!(21), &json!("line")));
    let advice = client.answer("advise", &json!({ "file": client.directory.path("before.db"), "directory": "/" }));
    assert!(advice["advice"][0]["id"].is_string(), "{advice}");
    let predicted = client.answer("whatif", &json!({ "files": "before.db", "remove": ["dirname"] }));
    assert_eq!(predicted["changes"][0]["launches"], 10);
    let diff = client.answer("diff", &json!({ "before": ["before.db"], "after": ["after.db"] }));
    assert_eq!((&diff["launches"]["difference"], &diff["left_out"]), (&json!(-18), &json!({})));
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/logs/unpack.log");
    let (has_failed, message) = client.call("import", &json!({ "logs": [log], "output": "unpack.db" }));
    assert!(!has_failed && message.contains("imported "), "{message}");
    assert!(client.directory.path("unpack.db").exists());
    client.end();
}

#[test]
fn failures_are_answers_that_an_agent_can_read() {
    let mut client = Client::start(&[]);
    for (tool, arguments, text) in [
        ("report", json!({ "file": "none.db" }), "none.db"),
        ("report", json!({ "directory": "/none" }), "failed to start in the directory /none"),
        ("report", json!({ "top": 3 }), "there is no argument `top`: report has file, by"),
        ("whatif", json!({ "files": ["before.db"], "remove": "nothing" }), "lists the programs"),
        ("record", json!({ "command": ["true"] }), "refused: this server may not run commands"),
    ] {
        let (has_failed, message) = client.call(tool, &arguments);
        assert!(has_failed, "{message}");
        assert_contains(&message, [text]);
    }
    assert_eq!(client.request("tools/call", &json!({ "name": "html" }))["error"]["code"], -32602);
    client.end();
}

#[test]
fn a_call_reports_progress_until_it_is_cancelled() {
    let mut client = Client::start(&[]);
    client.start_endless_call();
    for seconds in 1..3 {
        let progress = client.receive();
        assert_eq!(progress["method"], "notifications/progress");
        let params = &progress["params"];
        assert_eq!((&params["progressToken"], &params["progress"]), (&json!("token"), &json!(seconds)));
    }
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 8 } }));
    // The next message is the response to another request: the cancelled one has none.
    assert_eq!(client.answer("report", &json!({ "file": "before.db" }))["launches"], 21);
    client.end();
}

#[test]
fn the_server_ends_with_its_input_even_during_a_call() {
    let mut client = Client::start(&[]);
    client.start_endless_call();
    assert!(client.receive()["params"]["progress"].is_number());
    assert!(client.end() < Duration::from_secs(3));
}
