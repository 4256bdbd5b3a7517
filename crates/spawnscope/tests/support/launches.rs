//! The launches of an ndjson export, with accessors for tests.

use std::collections::HashSet;

use serde_json::Value;

/// The eight phases in order.
pub const PHASES: [&str; 8] = ["create", "queue", "setup", "exec", "load", "run", "teardown", "reap"];

/// One line of the export.
pub struct Launch(Value);

impl Launch {
    pub fn id(&self) -> u64 {
        self.0["id"].as_u64().expect("a launch has an id")
    }

    pub fn parent(&self) -> Option<u64> {
        self.0["parent"].as_u64()
    }

    pub fn pid(&self) -> Option<i64> {
        self.0["pid"].as_i64()
    }

    pub fn start_ns(&self) -> Option<u64> {
        self.0["start_ns"].as_u64()
    }

    pub fn end_ns(&self) -> Option<u64> {
        self.0["end_ns"].as_u64()
    }

    pub fn origin(&self) -> &str {
        self.text("origin")
    }

    pub fn mechanism(&self) -> &str {
        self.text("mechanism")
    }

    pub fn command(&self) -> &str {
        self.text("command")
    }

    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("no {key} in {}", self.0))
    }

    /// Returns the duration of a phase, or `None` if it is unknown.
    pub fn phase_ns(&self, phase: &str) -> Option<i64> {
        self.0["phases"][phase].as_i64()
    }

    /// Returns the base names of the files of the successful execs, in order.
    pub fn programs(&self) -> Vec<&str> {
        let execs = self.0["execs"].as_array().expect("execs").iter();
        let paths = execs.map(|exec| exec["path"].as_str().expect("a path"));
        paths.map(|path| path.rsplit('/').next().expect("a base name")).collect()
    }

    /// Returns the arguments of the last successful exec.
    pub fn arguments(&self) -> Vec<&str> {
        let execs = self.0["execs"].as_array();
        let last = execs.and_then(|execs| execs.last()).expect("an exec");
        let arguments = last["argv"].as_array().expect("arguments").iter();
        arguments.map(|argument| argument.as_str().expect("text")).collect()
    }

    /// Returns the paths and error numbers of the failed execs, in order.
    pub fn failed_execs(&self) -> Vec<(String, i64)> {
        let failed = self.0["failed_execs"].as_array().expect("failed execs");
        let pairs = failed.iter().map(|exec| {
            let path = exec["path"].as_str().expect("a path");
            (path.to_owned(), exec["errno"].as_i64().expect("errno"))
        });
        pairs.collect()
    }

    pub fn exit_code(&self) -> Option<i64> {
        self.0["exit"]["code"].as_i64()
    }

    pub fn exit_signal(&self) -> Option<&str> {
        self.0["exit"]["signal"].as_str()
    }

    /// Returns the parsed line, for values without an accessor.
    pub fn json(&self) -> &Value {
        &self.0
    }
}

impl std::fmt::Display for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// All launches of a recording.
pub struct Launches(pub Vec<Launch>);

impl Launches {
    /// Parses an export and checks that launch ids are unique.
    pub fn parse(lines: &[u8]) -> Launches {
        let lines = std::str::from_utf8(lines).expect("ndjson is UTF-8");
        let launches: Vec<Launch> = lines
            .lines()
            .map(|line| Launch(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))))
            .collect();
        let ids: HashSet<u64> = launches.iter().map(Launch::id).collect();
        assert_eq!(ids.len(), launches.len(), "ids are unique");
        Launches(launches)
    }

    /// Returns the launch of the command.
    #[track_caller]
    pub fn root(&self) -> &Launch {
        self.only(|launch| launch.origin() == "command")
    }

    /// Returns the launches of a parent.
    pub fn children_of(&self, parent: &Launch) -> Vec<&Launch> {
        self.all(|launch| launch.parent() == Some(parent.id()))
    }

    #[track_caller]
    pub fn with_pid(&self, pid: i64) -> &Launch {
        self.only(|launch| launch.pid() == Some(pid))
    }

    pub fn all(&self, wanted: impl Fn(&Launch) -> bool) -> Vec<&Launch> {
        self.0.iter().filter(|launch| wanted(launch)).collect()
    }

    #[track_caller]
    pub fn only(&self, wanted: impl Fn(&Launch) -> bool) -> &Launch {
        let found = self.all(wanted);
        assert_eq!(found.len(), 1, "matching launches of {}", self.0.len());
        found[0]
    }
}
