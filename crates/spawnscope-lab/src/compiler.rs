//! The C compiler, if there is one, for programs that cannot be written as bytes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::LabError;

/// A working compiler.
pub struct Compiler {
    name: String,
}

impl Compiler {
    /// The compiler `cc`, if it runs.
    #[must_use]
    pub fn find() -> Option<Compiler> {
        Compiler::named("cc")
    }

    /// The compiler with this name, if it runs.
    #[must_use]
    pub fn named(name: &str) -> Option<Compiler> {
        let quiet = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        quiet
            .is_ok_and(|status| status.success())
            .then(|| Compiler { name: name.to_owned() })
    }

    /// Compiles `source` to `output`. The options come last, because linkers expect libraries after the objects that need them.
    ///
    /// # Errors
    /// The compiler's last error message.
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
        let said = String::from_utf8_lossy(&compiled.stderr);
        let last = said
            .lines()
            .rfind(|line| line.contains("error") || line.contains("cannot"));
        let last = last.or(said.lines().last()).unwrap_or("no reason given");
        Err(LabError::Unavailable(format!("{} refused: {last}", self.name)))
    }
}
