//! Layouts of programs that are no interpreters; those of interpreters are held against real ones by the live tests.

use std::path::Path;

use super::*;

fn layout_of(path: &Path) -> Option<WirePython> {
    let program = Program {
        path,
        root: Path::new("/"),
        library_path: b"",
    };
    layout(&File::open(path).unwrap(), &program)
}

#[test]
fn a_program_that_is_no_python_has_no_layout() {
    assert_eq!(layout_of(&std::env::current_exe().unwrap()), None);
}

#[test]
fn a_file_that_is_no_program_has_no_layout() {
    let directory = tempfile::tempdir().unwrap();
    for (name, bytes) in [("empty", &b""[..]), ("script", b"#!/usr/bin/python3\n"), ("elf", b"\x7fELF\x02\x01\x01")] {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(layout_of(&path), None, "{name}");
    }
}
