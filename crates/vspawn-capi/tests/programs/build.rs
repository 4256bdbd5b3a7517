//! Builds the libraries, and C programs that use them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::library::{self, CRATE, succeed};

/// Builds libvspawn.so and libvspawn.a. Returns their directory.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(library::build)
}

/// How a program is linked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Shared,
    Static,
    /// Shared, and the program itself with AddressSanitizer and LeakSanitizer.
    Sanitized,
}

/// A compiled C program, with a directory for it and for the library under its SONAME.
pub struct Program {
    directory: TempDir,
}

impl Program {
    pub fn build(name: &str, link: Link) -> Program {
        Program::build_from(&Path::new(CRATE).join(format!("tests/c/{name}.c")), link)
    }

    pub fn build_from(source: &Path, link: Link) -> Program {
        let directory = tempfile::tempdir().expect("a directory");
        let libraries = libraries();
        for name in ["libvspawn.so", "libvspawn.so.0"] {
            std::os::unix::fs::symlink(libraries.join("libvspawn.so"), directory.path().join(name)).expect("a link");
        }
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
        cc.arg("-I").arg(Path::new(CRATE).join("include"));
        cc.arg(source);
        cc.arg("-o").arg(directory.path().join("program"));
        match link {
            Link::Static => cc.arg(libraries.join("libvspawn.a")).args(["-lgcc_s", "-lutil", "-lrt", "-lm", "-ldl"]),
            Link::Shared => cc.arg("-L").arg(directory.path()).arg("-lvspawn"),
            Link::Sanitized => {
                cc.args(["-fsanitize=address", "-fno-omit-frame-pointer", "-L"]).arg(directory.path()).arg("-lvspawn")
            }
        };
        succeed(&mut cc);
        Program { directory }
    }

    /// Returns a command that runs the program, under `runner` (such as valgrind) if that is not
    /// empty.
    pub fn command(&self, runner: &[&str]) -> Command {
        let program = self.directory.path().join("program");
        let mut command = match runner {
            [] => Command::new(&program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&program);
                command
            }
        };
        command.env("LD_LIBRARY_PATH", self.directory.path()).stdin(std::process::Stdio::null());
        command
    }
}
