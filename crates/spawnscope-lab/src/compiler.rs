//! The C compiler, if one is installed, for programs that are too complex to be written as machine
//! code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::LabError;

/// A program that exits with `STATUS`.
pub const PROGRAM: &str = "int main(void) { return 42; }";
pub const STATUS: i32 = 42;

pub struct Compiler {
    name: String,
}

impl Compiler {
    /// Finds the compiler with this name; returns `None` if it cannot be run.
    pub fn named(name: &str) -> Option<Compiler> {
        let status = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then(|| Compiler { name: name.to_owned() })
    }

    /// Compiles `source` to `output`. The options come last, because linkers expect libraries after
    /// the objects that need them. An error has the compiler's last error message.
    pub fn compile(&self, source: &str, output: &Path, options: &[&str]) -> Result<PathBuf, LabError> {
        let file = output.with_extension("c");
        std::fs::write(&file, source).map_err(LabError::doing("write a program"))?;
        let compiled = Command::new(&self.name)
            .args(["-O1", "-w", "-o"])
            .arg(output)
            .arg(&file)
            .args(options)
            .output()
            .map_err(LabError::doing("run the compiler"))?;
        if compiled.status.success() {
            return Ok(output.to_owned());
        }
        let errors = String::from_utf8_lossy(&compiled.stderr);
        let last = errors.lines().rfind(|line| line.contains("error") || line.contains("cannot"));
        let last = last.or(errors.lines().last()).unwrap_or("no reason given");
        Err(LabError::Unavailable(format!("{} failed: {last}", self.name)))
    }
}
