//! `shell`: real shells with start-up files in a home of their own. Each patch is applied, and the
//! shell must then start as before, without the lines that were slow.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::run::write_program;
use crate::support::{apply, live_test};

struct Home(tempfile::TempDir);

impl Home {
    fn new(files: &[(&str, &str)]) -> Home {
        let home = Home(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            write_program(&path, text);
        }
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, command: &[&str]) -> Output {
        let path = format!("{}/bin:{}", self.path().display(), std::env::var("PATH").unwrap());
        let mut run = Command::new(command[0]);
        run.args(&command[1..]).current_dir(self.path()).stdin(Stdio::null());
        run.env("HOME", self.path()).env("ZDOTDIR", self.path()).env("PATH", path).env_remove("XDG_CACHE_HOME");
        run.env_remove("XDG_CONFIG_HOME");
        run.output().unwrap()
    }

    fn shell(&self, arguments: &[&str]) -> Output {
        self.run(&[&[env!("CARGO_BIN_EXE_spawnscope"), "shell"], arguments].concat())
    }

    fn report(&self, arguments: &[&str]) -> Value {
        let output = self.shell(&[arguments, &["--json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
    }

    /// Applies the patch of this shell, and returns what it left out.
    fn apply_patch(&self, shell: &str) -> String {
        let output = self.shell(&[shell, "--patch"]);
        fs::write(self.path().join("changes.diff"), &output.stdout).unwrap();
        let applied = self.run(&["patch", "-p0", "-i", "changes.diff"]);
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Returns what an interactive shell prints for these commands.
    fn says(&self, shell: &str, commands: &str) -> String {
        String::from_utf8(self.run(&[shell, "-ic", commands]).stdout).unwrap()
    }
}

/// Returns the lines of a file that run `sleep` before the first prompt, as all slow programs here
/// do: for at least a sixth of the shortest sleep. On a busy machine, lines of the system take
/// long, too, and the moments before the exec may belong to the line before.
fn sleeping_lines(report: &Value, file: &str) -> Vec<u64> {
    let lines = report["before_prompt"]["inner"].as_array().unwrap().iter();
    let sleeps = |program: &Value| program["name"] == "sleep" && program["time_ns"].as_u64() > Some(25_000_000);
    let sleeping = lines.filter(|line| {
        line["file"].as_str().is_some_and(|path| path.ends_with(file))
            && line["programs"].as_array().unwrap().iter().any(sleeps)
    });
    sleeping.map(|line| line["line"].as_u64().unwrap()).collect()
}

/// A program that prints code as `direnv hook` does, and takes time.
const SLOW_HOOK: &str = "#!/bin/sh\nsleep 0.25\necho 'hooked=\"for $0 is set\"'\n";
const SLOW_NVM: &str = "sleep 0.2\nnvm() { echo \"nvm $*\"; }\nnode() { echo \"node $*\"; }\n";

#[apply(live_test)]
fn a_patched_bash_sleeps_at_fewer_lines_and_is_the_same() {
    let rc = "NVM_DIR=~/.nvm\ncommand -v direnv >/dev/null && eval \"$(direnv hook bash)\"\n\
              if true; then\n  [ -s \"$NVM_DIR/nvm.sh\" ] && \\. \"$NVM_DIR/nvm.sh\"  # nvm\nfi\nsleep 0.15\n";
    let home =
        Home::new(&[(".bashrc", rc), ("bin/direnv", SLOW_HOOK), (".nvm/nvm.sh", SLOW_NVM), (".bash_history", "a\n")]);
    let before = home.report(&["bash"]);
    assert_eq!(sleeping_lines(&before, ".bashrc"), [2, 4, 6], "{before:#}");
    assert_eq!(before["before_prompt"]["inner"][1]["programs"][0]["name"], "sleep");
    assert_eq!(fs::read_to_string(home.path().join(".bashrc")).unwrap(), rc, "nothing is changed");
    let commands = "echo \"$hooked\"; nvm 1 2; node 'a b'; echo $_saved";
    let same = home.says("bash", commands);
    assert!(same.contains("is set") && same.contains("nvm 1 2\nnode a b\n"), "{same}");
    let left_out = home.apply_patch("bash");
    assert!(left_out.contains("not in the patch: start sleep later"), "{left_out}");
    // The first start writes the file with the code.
    assert_eq!([home.says("bash", commands), home.says("bash", commands)], [same.clone(), same]);
    assert_eq!(sleeping_lines(&home.report(&["bash"]), ".bashrc"), [6]);
    assert_eq!(fs::read_to_string(home.path().join(".bash_history")).unwrap(), "a\n");
}

#[apply(live_test)]
#[needs(Zsh)]
fn prompts_of_zsh_are_told_by_line() {
    let rc = "autoload -Uz compinit && compinit -u\nprecmd() {\n  true\n  sleep 0.05\n}\n";
    let home = Home::new(&[(".zshrc", rc)]);
    let report = home.report(&["zsh", "--prompt", "4"]);
    let slowest = &report["at_prompt"]["inner"][0];
    assert_eq!((slowest["line"].as_u64(), slowest["function"].as_str()), (Some(4), Some("precmd")), "{report:#}");
    assert!(report["prompt_ns"].as_u64().unwrap() >= 50_000_000, "{report:#}");
    assert_eq!(report["advice"].as_array().unwrap().iter().filter(|advice| advice["at_prompt"] == true).count(), 1);
    home.apply_patch("zsh");
    let patched = fs::read_to_string(home.path().join(".zshrc")).unwrap();
    assert!(patched.starts_with("autoload -Uz compinit && compinit -C -u\n") || patched == rc, "{patched}");
}

#[apply(live_test)]
#[needs(Fish)]
fn lines_of_fish_are_found_in_its_trace() {
    let config = "true\nfunction slow\n    true\n    sleep 0.15\nend\n\
                  direnv hook fish | source\nif status is-interactive\n    slow\nend\n";
    let direnv = "#!/bin/sh\nsleep 0.25\necho 'set hooked yes'\n";
    let home = Home::new(&[(".config/fish/config.fish", config), ("bin/direnv", direnv)]);
    let before = home.report(&["fish"]);
    let lines = before["before_prompt"]["inner"].as_array().unwrap();
    let users = lines
        .iter()
        .filter(|line| line["file"].as_str().is_some_and(|file| file.ends_with(".config/fish/config.fish")));
    let users: Vec<&Value> = users.collect();
    assert_eq!([&users[0]["line"], &users[1]["line"]], [6, 8], "{before:#}");
    assert_eq!((&users[1]["inner"][0]["line"], &users[1]["inner"][0]["function"]), (&4.into(), &"slow".into()));
    assert_eq!(users[1]["inner"][0]["programs"][0]["name"], "sleep");
    home.apply_patch("fish");
    assert_eq!(["echo $hooked"; 2].map(|commands| home.says("fish", commands)), ["yes\n"; 2]);
    let lines = [&before, &home.report(&["fish"])].map(|report| sleeping_lines(report, "/.config/fish/config.fish"));
    assert_eq!(lines, [vec![6, 8], vec![8]]);
}

#[apply(live_test)]
fn a_shell_without_a_prompt_is_ended_with_what_it_does() {
    let message = |rc: &str| {
        let home = Home::new(&[(".bashrc", rc)]);
        let output = home.shell(&["bash", "--timeout", "1"]);
        assert_eq!(output.status.code(), Some(125));
        String::from_utf8(output.stderr).unwrap()
    };
    let asks = message("read -p 'Update? ' x\n");
    assert!(asks.contains("it waits for input at") && asks.contains(".bashrc:1, `read -p 'Update? ' x`"), "{asks}");
    let hangs = message("true\nsleep 77\n");
    assert!(
        hangs.contains("within 1 s: it was at") && hangs.contains(".bashrc:2, `sleep 77`, waiting for sleep"),
        "{hangs}"
    );
    assert!(message("exit 3\n").contains("ended before it showed a prompt"), "{}", message("exit 3\n"));
}
