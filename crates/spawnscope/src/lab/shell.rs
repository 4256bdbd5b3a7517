//! Shells: which there are, and one that launches as scripts do, told how often through a pipe.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::LabError;

/// The file of a program along PATH.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH")?;
    let is_program = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(is_program)
}

/// A shell that holds a variable of a given length, and launches a program when it is told to.
pub struct ShellParent {
    child: Child,
    pipes: RefCell<Option<(ChildStdin, BufReader<ChildStdout>)>>,
}

/// Counts those that ended well, so that a launch which failed is seen.
const SCRIPT: &str = r#"printf -v ballast '%*s' "$1" ''
echo "${#ballast}"
while read -r count; do
    done=0
    for ((i = 0; i < count; i++)); do "$2" && ((++done)); done
    echo "$done"
done"#;

impl ShellParent {
    /// Starts bash with so many bytes in a variable.
    ///
    /// # Errors
    /// When it cannot be started, or did not get them.
    pub fn start(bash: &Path, bytes: u64, program: &Path) -> Result<ShellParent, LabError> {
        let mut child = Command::new(bash)
            .args(["-c", SCRIPT, "bash", &bytes.to_string()])
            .arg(program)
            // A multibyte encoding has it count characters for seconds.
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LabError::doing("start bash"))?;
        let pipes = child.stdin.take().zip(child.stdout.take().map(BufReader::new));
        let parent = ShellParent {
            child,
            pipes: RefCell::new(pipes),
        };
        parent.heard(bytes)?;
        Ok(parent)
    }

    /// Launches so many times: nanoseconds of one.
    ///
    /// # Errors
    /// When not all of them ended well.
    pub fn launch(&self, count: u32) -> Result<f64, LabError> {
        let began = Instant::now();
        if let Some((input, _)) = self.pipes.borrow_mut().as_mut() {
            writeln!(input, "{count}").map_err(LabError::doing("ask bash"))?;
        }
        self.heard(u64::from(count))?;
        Ok(began.elapsed().as_nanos() as f64 / f64::from(count))
    }

    fn heard(&self, number: u64) -> Result<(), LabError> {
        let mut line = String::new();
        if let Some((_, output)) = self.pipes.borrow_mut().as_mut() {
            output.read_line(&mut line).map_err(LabError::doing("hear bash"))?;
        }
        if line.trim() == number.to_string() {
            return Ok(());
        }
        Err(LabError::Untrusted(format!(
            "bash answered `{}`, not {number}",
            line.trim()
        )))
    }
}

impl Drop for ShellParent {
    fn drop(&mut self) {
        self.pipes.borrow_mut().take();
        let _ = self.child.wait();
    }
}
