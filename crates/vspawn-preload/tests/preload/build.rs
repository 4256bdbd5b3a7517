//! Builds the library and the C programs, and runs texts with the program `launch`, with and
//! without the library.

use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::library::{self, CRATE, succeed};

/// The hooked functions with which `launch` executes a program.
pub const FUNCTIONS: [&str; 10] =
    ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "vfork", "posix_spawn", "posix_spawnp"];

/// Builds the library. Returns its path.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| library::build().join("libvspawn_preload.so"))
}

/// Compiles the C programs. Returns their directory.
fn programs() -> &'static Path {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let directory = tempfile::tempdir().expect("a directory");
            for (name, option) in [("probe", "-static"), ("launch", "-Wno-mismatched-dealloc")] {
                let mut cc = Command::new("timeout");
                cc.args(["60", "cc", "-O1", "-Wall", "-Wextra", "-Werror", option]);
                cc.arg(Path::new(CRATE).join(format!("tests/c/{name}.c")));
                succeed(cc.arg("-o").arg(directory.path().join(name)));
            }
            directory
        })
        .path()
}

/// A directory with `probe` and `launch`, in which texts are run.
pub struct Directory {
    directory: TempDir,
}

/// How texts are run.
#[derive(Clone)]
pub struct Setting {
    pub function: &'static str,
    pub shell: &'static str,
    pub variables: BTreeMap<String, String>,
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Result {
    pub output: String,
    pub errors: String,
    /// The files that the run created, with their modes and contents. They are removed.
    pub files: BTreeMap<String, (u32, String)>,
}

/// What each directory contains before a run.
const CONTENTS: [&str; 9] =
    ["probe", "launch", "script", "plain", "lost", "directory", "counters", "loaded", "loaded-script"];

impl Setting {
    pub fn new(function: &'static str, shell: &'static str) -> Setting {
        Setting { function, shell, variables: BTreeMap::new() }
    }

    pub fn with(mut self, name: &str, value: &str) -> Setting {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Like `with`, for `NAME=VALUE`.
    pub fn with_variable(self, variable: &str) -> Setting {
        let (name, value) = variable.split_once('=').expect("a variable");
        self.with(name, value)
    }
}

impl Directory {
    pub fn new() -> Directory {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["probe", "launch"] {
            std::fs::copy(programs().join(name), directory.path().join(name)).expect("a copy");
        }
        let text_without_interpreter = "echo from a text file\n";
        for (name, text, mode) in [
            ("script", text_without_interpreter, 0o755),
            ("plain", "not executable\n", 0o644),
            ("lost", "#!/nonexistent/interpreter\n", 0o755),
        ] {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("its mode");
        }
        std::fs::create_dir(directory.path().join("directory")).expect("a directory");
        Directory { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs texts with or without the library.
    pub fn run(&self, setting: &Setting, texts: &[&[u8]], with_library: bool) -> Result {
        let mut input = tempfile::tempfile().expect("a file");
        for text in texts {
            input.write_all(text).and_then(|()| input.write_all(b"\0")).expect("a file");
        }
        input.rewind().expect("a file");
        let output = Command::new("/usr/bin/timeout")
            .args(["300", "./launch", setting.function, setting.shell])
            .env_clear()
            .current_dir(self.path())
            .env("PATH", format!("{}:/usr/bin:/bin", self.path().display()))
            .env("LD_PRELOAD", library())
            .envs(&setting.variables)
            .env("SPAWNSCOPE_ACCEL", if with_library { "1" } else { "0" })
            .stdin(Stdio::from(input))
            .output()
            .expect("timeout starts");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        Result {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
            files: self.take_files(),
        }
    }

    fn take_files(&self) -> BTreeMap<String, (u32, String)> {
        let entries = std::fs::read_dir(self.path()).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names
            .filter(|name| !CONTENTS.contains(&name.as_str()))
            .map(|name| {
                let path = self.path().join(&name);
                let mode = std::fs::metadata(&path).expect("a file").mode();
                let content = std::fs::read(&path).expect("a file");
                std::fs::remove_file(path).expect("its removal");
                (name, (mode, String::from_utf8_lossy(&content).into_owned()))
            })
            .collect()
    }

    /// Runs texts with and without the library, and compares the results. If they differ, repeats
    /// the texts one by one to find the culprit. Returns how often the shell was skipped.
    pub fn compare(&self, setting: &Setting, texts: &[&[u8]]) -> u64 {
        let page = self.path().join("counters");
        std::fs::write(&page, [0; 4096]).expect("a file");
        let counted = setting.clone().with("SPAWNSCOPE_ACCEL_EXPLAIN", page.to_str().expect("a path"));
        let (without, with) = (self.run(&counted, texts, false), self.run(&counted, texts, true));
        if without != with {
            for text in texts {
                let (without, with) = (self.run(&counted, &[text], false), self.run(&counted, &[text], true));
                let text = String::from_utf8_lossy(text);
                let (function, shell) = (setting.function, setting.shell);
                let [without, with] =
                    [without, with].map(|result| format!("{}\n{}\n{:#?}", result.output, result.errors, result.files));
                assert_eq!(without, with, "{function} {shell} {text:?} {:?}", setting.variables);
            }
            panic!("{:?}: the results differ only if all texts run together: {without:?} {with:?}", setting.variables);
        }
        let counters = std::fs::read(&page).expect("a file");
        u64::from_ne_bytes(counters[..8].try_into().expect("eight bytes"))
    }
}
