//! Runs the doctor, and searches its findings.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use serde_json::Value;

use crate::support::attempts::ok_if;
use crate::support::run::{Finished, SPAWNSCOPE, run};

/// The doctor's JSON output, and its exit status.
pub struct Examination {
    json: Value,
    pub code: i32,
}

/// Runs checks, separated by spaces, through a launcher, such as `unshare`, which may be empty. The
/// launcher sets up the environment.
pub fn examine(launcher: impl IntoIterator<Item = impl AsRef<OsStr>>, checks: &str) -> Examination {
    let launcher = launcher.into_iter();
    let mut words: Vec<OsString> = launcher.map(|word| word.as_ref().to_owned()).collect();
    words.extend([SPAWNSCOPE, "doctor", "--json"].into_iter().chain(checks.split(' ')).map(OsString::from));
    let mut command = Command::new(&words[0]);
    // The LD_LIBRARY_PATH that Cargo sets would be a finding.
    command.args(&words[1..]).env_remove("LD_LIBRARY_PATH");
    Examination::from_output(&run(&mut command))
}

/// Runs the doctor in a shell that first executes `mount` in its own mount namespace, with `$1` a
/// directory of the test.
pub fn examine_after(mount: &str, checks: &str) -> Examination {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = format!("set -e; {mount}; shift; exec \"$@\"");
    let words = ["unshare", "--mount", "sh", "-c", &script, "sh"].map(OsStr::new).into_iter();
    examine(words.chain([directory.path().as_os_str()]), checks)
}

impl Examination {
    pub fn from_output(finished: &Finished) -> Examination {
        let code = finished.code();
        let json = serde_json::from_slice(&finished.stdout)
            .unwrap_or_else(|error| panic!("{error}; status {code}: {}", finished.errors()));
        let examination = Examination { json, code };
        let problems = examination.findings().iter().any(|finding| finding["severity"] == "problem");
        assert_eq!(code, i32::from(problems), "{:#}", examination.json);
        examination
    }

    pub fn findings(&self) -> &[Value] {
        self.json["findings"].as_array().expect("findings")
    }

    /// Returns the first finding with this severity whose title, evidence and fix contain all these
    /// words.
    pub fn find(&self, severity: &str, words: &[&str]) -> Result<Value, String> {
        let finding = self.findings_with(words).find(|finding| finding["severity"] == severity).cloned();
        finding.ok_or_else(|| format!("no {severity} with {words:?} in {}", self.describe()))
    }

    #[track_caller]
    pub fn expect(&self, severity: &str, words: &[&str]) -> Value {
        self.find(severity, words).unwrap_or_else(|message| panic!("{message}"))
    }

    /// Checks that there is a finding of any severity that contains all these words.
    #[track_caller]
    pub fn expect_any(&self, words: &[&str]) {
        assert!(self.findings_with(words).next().is_some(), "no finding with {words:?} in {}", self.describe());
    }

    /// Returns the findings whose title, evidence and fix contain all these words.
    fn findings_with(&self, words: &[&str]) -> impl Iterator<Item = &Value> {
        self.findings().iter().filter(move |finding| {
            let texts = ["title", "evidence", "fix"].map(|key| finding[key].to_string());
            let text = texts.join(" ");
            words.iter().all(|word| text.contains(word))
        })
    }

    /// Checks that there is no finding of any severity.
    pub fn check_silence(&self) -> Result<(), String> {
        ok_if(self.findings().is_empty(), || self.describe())
    }

    /// Checks that these launches were timed.
    pub fn check_timed(&self, what: &[&str]) -> Result<(), String> {
        let untimed: Vec<_> = what.iter().filter(|what| self.cost(what).is_none()).collect();
        ok_if(untimed.is_empty(), || format!("{untimed:?} was not timed: {}", self.describe()))
    }

    /// Returns the complete output, for messages.
    pub fn describe(&self) -> String {
        format!("{:#}", self.json)
    }

    /// Returns the cost of a kind of launch in nanoseconds, by its name in JSON.
    pub fn cost(&self, what: &str) -> Option<u64> {
        self.json["launch_cost_ns"][what].as_u64()
    }

    pub fn unseen(&self) -> String {
        self.json["unseen"].to_string()
    }
}
