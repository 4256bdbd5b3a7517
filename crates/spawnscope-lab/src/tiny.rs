//! The lab's tiny programs. They exit with an unusual status; one of them writes a word first.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::LabError;
use spawnscope_system::tiny;

/// The exit status of the tiny programs, which proves that they ran. A shell that did nothing exits
/// with 0, and failures exit with 1 or 127.
pub const STATUS: i32 = 42;
/// The output of the program that writes.
pub const WORD: &str = "ran\n";

/// Writes a tiny program to a new file. With `word`, the program writes that word.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, word: Option<&str>) -> Result<(), LabError> {
    let program = tiny::program(STATUS as u8, word.unwrap_or_default());
    let doing = LabError::doing(format!("write {}", path.display()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path).map_err(&doing)?;
    file.write_all(&program).map_err(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiny_programs_prove_that_they_ran() {
        let directory = tempfile::tempdir().unwrap();
        for (name, word) in [("tiny", None), ("speaker", Some(WORD))] {
            let path = directory.path().join(name);
            write(&path, word).unwrap();
            let output = std::process::Command::new(&path).output().unwrap();
            assert_eq!(output.status.code(), Some(STATUS), "{name}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word.unwrap_or_default());
        }
    }
}
