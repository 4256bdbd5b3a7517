//! Distinguishes `#!` scripts from programs, from outside the process that executed them.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use spawnscope_data::event::Pid;

pub(crate) fn interpreter(process: Pid, argv: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    possible_interpreter(argv, path).filter(|_| is_script(process, path))
}

/// Returns the interpreter, if the file may be a `#!` script. The kernel puts the interpreter and
/// its argument before the file's name, so if the first arguments do not contain the name, the file
/// is not a script.
pub(crate) fn possible_interpreter(argv: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    let mut arguments = argv.split(|byte| *byte == 0);
    let first = arguments.next()?;
    arguments.take(2).any(|argument| argument == path).then(|| first.to_vec())
}

/// Whether a file, as the process sees it, begins with `#!`.
fn is_script(process: Pid, path: &[u8]) -> bool {
    let mut start = [0; 2];
    std::fs::File::open(path_as_seen_by(process, path))
        .is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == *b"#!")
}

/// Returns a path below /proc/PID that opens what the process sees at this path, in its own root,
/// mount namespace and working directory.
pub(crate) fn path_as_seen_by(process: Pid, path: &[u8]) -> PathBuf {
    let base = match path {
        [b'/', ..] => format!("/proc/{}/root", process.0),
        _ => format!("/proc/{}/cwd", process.0),
    };
    // Joining an absolute path would replace the base, so all leading slashes go.
    let leading = path.iter().take_while(|byte| **byte == b'/').count();
    PathBuf::from(base).join(OsStr::from_bytes(&path[leading..]))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn interpreter_in(command_line: &str, script: &str) -> Option<Vec<u8>> {
        let own = Pid(std::process::id().cast_signed());
        interpreter(own, command_line.replace(' ', "\0").as_bytes(), script.as_bytes())
    }

    #[test]
    fn every_path_is_opened_as_the_process_sees_it() {
        for (path, seen) in
            [("/bin/sh", "root/bin/sh"), ("//bin/sh", "root/bin/sh"), ("x/y", "cwd/x/y"), ("/", "root/")]
        {
            assert_eq!(path_as_seen_by(Pid(7), path.as_bytes()), Path::new("/proc/7").join(seen), "{path}");
        }
    }

    #[test]
    fn a_script_is_distinguished_from_a_program_whose_arguments_contain_its_own_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("script");
        let name = file.to_str().unwrap();
        std::fs::write(&file, "#!/bin/sh -e\n").unwrap();
        assert_eq!(interpreter_in(&format!("/bin/sh -e {name} x"), name), Some(b"/bin/sh".to_vec()));
        assert_eq!(interpreter_in(&format!("/bin/sh {name}"), name), Some(b"/bin/sh".to_vec()));
        assert_eq!(interpreter_in("/bin/sh x", name), None);
        std::fs::write(&file, "program").unwrap();
        assert_eq!(interpreter_in(&format!("/bin/sh {name}"), name), None);
    }
}
