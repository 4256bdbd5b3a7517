//! Runs the doctor, and asks what it found.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use serde_json::Value;

use crate::support::run::{Finished, SPAWNSCOPE, run};

/// What the doctor said, as JSON, and its exit status.
pub struct Examined {
    json: Value,
    pub code: i32,
}

/// Runs one check through a launcher, such as `unshare`; it may be none. The environment is the launcher's to make.
pub fn examine(launcher: &[&OsStr], check: &str) -> Examined {
    let mut words: Vec<OsString> = launcher.iter().map(OsString::from).collect();
    words.extend([SPAWNSCOPE, "doctor", "--json", "--check", check].map(OsString::from));
    let mut command = Command::new(&words[0]);
    // Cargo's own search path would be a finding.
    command.args(&words[1..]).env_remove("LD_LIBRARY_PATH");
    Examined::of(&run(&mut command))
}

impl Examined {
    pub fn of(finished: &Finished) -> Examined {
        let code = finished.code();
        let json = serde_json::from_slice(&finished.stdout)
            .unwrap_or_else(|error| panic!("{error}; status {code}: {}", finished.errors()));
        let examined = Examined { json, code };
        let problems = examined.all().iter().any(|finding| finding["severity"] == "problem");
        assert_eq!(code, i32::from(problems), "{:#}", examined.json);
        examined
    }

    pub fn all(&self) -> &[Value] {
        self.json["findings"].as_array().expect("findings")
    }

    /// The first finding whose title, evidence and fix have all these words.
    #[track_caller]
    pub fn expect(&self, severity: &str, words: &[&str]) -> &Value {
        let said = |finding: &Value| {
            ["title", "evidence", "fix"]
                .map(|key| finding[key].to_string())
                .join(" ")
        };
        let fits =
            |finding: &&Value| finding["severity"] == severity && words.iter().all(|word| said(finding).contains(word));
        let found = self.all().iter().find(fits);
        found.unwrap_or_else(|| panic!("no {severity} with {words:?} in {:#}", self.json))
    }

    #[track_caller]
    pub fn expect_silence(&self) {
        assert!(self.all().is_empty(), "{:#}", self.json);
        assert_eq!(self.code, 0);
    }

    pub fn unseen(&self) -> String {
        self.json["unseen"].to_string()
    }
}
