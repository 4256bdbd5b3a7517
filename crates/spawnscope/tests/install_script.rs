//! Runs `install.sh` as a new user does, piped into a shell, against a local server with a release.
//! The archive has the layout of `scripts/dist/package.sh`, with a script in place of the program.
//! Needs make, curl, and Python for the server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::installation::{Installation, files, installed_files, root};
use crate::run::write_program;

const SCRIPT: &str = include_str!("../../../install.sh");
const VERSION: &str = "9.8.7";
const PROGRAM: &str = "case $1 in --version) echo spawnscope 9.8.7 ;; *) echo \"$@\" ;; esac";
/// The programs that the script may use, all of which small systems have. A download needs curl or
/// wget in addition.
const TOOLS: &str = "awk cat cp dirname find grep gzip mkdir mktemp mv rm sed sha256sum tar uname wc";

/// A server with one release, and the home directory of a user. Ends with the test.
struct Release {
    directory: tempfile::TempDir,
    server: Child,
    url: String,
}

impl Release {
    fn new() -> Release {
        Release::of_program(PROGRAM)
    }

    fn of_program(program: &str) -> Release {
        let directory = tempfile::tempdir().unwrap();
        for name in ["home", "programs", "served/latest"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        let version = format!("served/download/v{VERSION}");
        pack(program, &directory.path().join(&version));
        symlink(directory.path().join(&version), directory.path().join("served/latest/download")).unwrap();
        let (server, url) = serve(&directory.path().join("served"));
        Release { directory, server, url }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn served(&self, name: &str) -> PathBuf {
        self.path(&format!("served/download/v{VERSION}")).join(name)
    }

    fn add_program(&self, name: &str, text: &str) {
        write_executable(&self.path("programs").join(name), text);
    }

    /// Runs a text as `curl URL | sh -s -- ARGUMENTS` does.
    fn pipe_into(&self, shell: &[&str], text: &str, arguments: &[&str], path: &str) -> Output {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-s", "--"]).args(arguments).current_dir(self.path(""));
        command.env_clear().env("HOME", self.path("home")).env("PATH", path).env("SPAWNSCOPE_RELEASES", &self.url);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The shell may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn install(&self, arguments: &[&str]) -> Output {
        let path = format!("{}:{}", self.path("programs").display(), std::env::var("PATH").unwrap());
        self.pipe_into(&["sh"], SCRIPT, arguments, &path)
    }

    /// Checks that an installation fails with this message and changes nothing.
    #[track_caller]
    fn expect_failure(&self, arguments: &[&str], message: &str) {
        let before = files(&self.path("home"));
        let output = self.install(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(message), "{errors}");
        assert_eq!(files(&self.path("home")), before);
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn machine() -> String {
    rustix::system::uname().machine().to_str().unwrap().to_owned()
}

fn archive() -> String {
    format!("spawnscope-{VERSION}-{}-linux", machine())
}

fn write_executable(path: &Path, text: &str) {
    write_program(path, format!("#!/bin/sh\n{text}\n"));
}

/// Makes the archive of a release and its checksums, as `make dist` does.
fn pack(program: &str, directory: &Path) {
    let tree = directory.join(archive());
    fs::create_dir_all(&tree).unwrap();
    let file = directory.join("program");
    write_executable(&file, program);
    let file = file.display();
    let settings = ["PREFIX=".to_owned(), format!("BINARY={file}"), format!("RUNNABLE={file}")];
    let mut settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let destination = format!("DESTDIR={}", tree.display());
    settings.push(&destination);
    Installation::new().make(&["install"], &settings);
    let name = archive();
    let pack = format!("tar -czf {name}.tar.gz {name} && sha256sum {name}.tar.gz >SHA256SUMS && rm -r {name} program");
    assert!(Command::new("sh").args(["-c", &pack]).current_dir(directory).status().unwrap().success());
}

/// Serves a directory on a free port. Returns the server and its address.
fn serve(directory: &Path) -> (Child, String) {
    let mut command = Command::new("python3");
    command.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"]).arg(directory);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    (server, format!("http://127.0.0.1:{port}"))
}

#[test]
fn the_newest_release_is_installed_below_the_home_directory() {
    let release = Release::new();
    let prefix = release.path("home/.local");
    for shell in [["sh"].as_slice(), &["bash"], &["bash", "--posix"]] {
        let output = release.pipe_into(shell, SCRIPT, &[], &std::env::var("PATH").unwrap());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{shell:?}: {errors}");
        assert_eq!(files(&prefix), installed_files(), "{shell:?}");
        let printed = String::from_utf8(output.stdout).unwrap();
        let programs = prefix.join("bin").display().to_string();
        assert!(printed.starts_with(&format!("installed spawnscope {VERSION} in {programs}\n")), "{printed}");
        assert!(printed.contains(&format!("export PATH=\"{programs}:$PATH\"")), "{printed}");
        let (_, example) = printed.split_once("record -- bash ").unwrap();
        assert!(Path::new(example.split_once(" 40\n").unwrap().0).exists(), "{printed}");
        let installed = Command::new(prefix.join("bin/spawnscope")).arg("--version").output().unwrap();
        assert_eq!(installed.stdout, b"spawnscope 9.8.7\n");
    }
}

#[test]
fn a_release_can_be_chosen_and_installed_elsewhere() {
    let release = Release::new();
    fs::remove_file(release.path("served/latest/download")).unwrap();
    let output = release.install(&["--version", "v9.8.7", "--prefix", "a directory"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files(&release.path("a directory")), installed_files());
    assert!(files(&release.path("home")).is_empty());
}

#[test]
fn few_programs_are_needed_and_wget_may_replace_curl() {
    let release = Release::new();
    let programs = release.path("programs");
    for tool in TOOLS.split(' ') {
        let search = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap();
        symlink(String::from_utf8(search.stdout).unwrap().trim(), programs.join(tool)).unwrap();
    }
    let path = programs.to_str().unwrap().to_owned();
    let output = release.pipe_into(&["/bin/sh"], SCRIPT, &[], &path);
    assert!(String::from_utf8_lossy(&output.stderr).contains("neither curl nor wget"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
    let search = Command::new("sh").args(["-c", "command -v curl"]).output().unwrap();
    let curl = String::from_utf8(search.stdout).unwrap();
    let text = format!("[ \"$1 $2\" = '-q -O' ] && exec {} --fail --silent --output \"$3\" \"$4\"", curl.trim());
    release.add_program("wget", &text);
    let output = release.pipe_into(&["/bin/sh"], SCRIPT, &[], &path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files(&release.path("home/.local")), installed_files());
}

#[test]
fn a_changed_archive_is_not_installed() {
    let release = Release::new();
    assert!(release.install(&[]).status.success());
    let archive = release.served(&format!("{}.tar.gz", archive()));
    let mut bytes = fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&archive, bytes).unwrap();
    release.expect_failure(&[], "the checksum of spawnscope-9.8.7-");
}

#[test]
fn a_missing_release_or_archive_is_named() {
    let release = Release::new();
    release.expect_failure(&["--version", "9.8.6"], "failed to download http://127.0.0.1:");
    release.expect_failure(&["--version", "../9.8.7"], "does not look like 0.2.0");
    release.expect_failure(&["--version"], "--version needs a value");
    release.expect_failure(&["--verbose"], "unknown argument '--verbose'");
    let sums = release.served("SHA256SUMS");
    let listed = fs::read_to_string(&sums).unwrap();
    fs::write(&sums, listed.replace(&machine(), "another")).unwrap();
    release.expect_failure(&[], &format!("has no archive for {}", machine()));
    fs::write(&sums, listed.replace(VERSION, "9.8.8")).unwrap();
    release.expect_failure(&["--version", VERSION], "is another version: spawnscope-9.8.8-");
}

#[test]
fn machines_without_a_release_get_none() {
    let release = Release::new();
    release.add_program("uname", "case $1 in -s) echo Linux ;; -m) echo riscv64 ;; esac");
    release.expect_failure(&[], "there is no release for riscv64");
    release.add_program("uname", "case $1 in -s) echo Darwin ;; -m) echo arm64 ;; esac");
    release.expect_failure(&[], "records on Linux only");
}

#[test]
fn a_program_that_does_not_run_here_is_not_installed() {
    let release = Release::of_program("echo \"GLIBC_2.31' not found\" >&2; [ \"$1\" = completions ]");
    release.expect_failure(&[], "It needs glibc 2.31 or later");
    release.expect_failure(&[], "  GLIBC_2.31' not found\n");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let release = Release::new();
    fs::write(release.path("file"), "").unwrap();
    release.expect_failure(&["--prefix", "file/below"], "choose another directory with --prefix");
}

#[test]
fn a_script_that_was_cut_off_does_nothing() {
    let release = Release::new();
    let lines: Vec<&str> = SCRIPT.split_inclusive('\n').collect();
    let path = std::env::var("PATH").unwrap();
    for end in 1..lines.len() {
        let output = release.pipe_into(&["sh"], &lines[..end].concat(), &[], &path);
        assert!(output.stdout.is_empty(), "{end} lines: {output:?}");
    }
    assert!(files(&release.path("home")).is_empty());
    assert!(root().join("install.sh").metadata().unwrap().permissions().mode() & 0o111 != 0);
}
