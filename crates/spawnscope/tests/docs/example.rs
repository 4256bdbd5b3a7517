//! What is printed for the recording of the example can be used as it is: commands run, and the
//! patch keeps what the script does.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use super::shown::{Recording, SCRIPT, UNPACK};

/// Runs a command line in a directory, with this build of spawnscope in PATH.
fn run(line: &str, directory: &Path) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_spawnscope")).parent().unwrap().display();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    // No repository above the temporary directory may change what git does.
    shell.args(["-c", line]).current_dir(directory).env("PATH", path).env("GIT_CEILING_DIRECTORIES", "/");
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn the_patched_example_does_the_same() {
    let recording = Recording::from_rows(UNPACK);
    let directory = recording.directory.path();
    let example = format!("bash {SCRIPT} 40");
    let (before, original) = (run(&example, directory).stdout, fs::read(directory.join(SCRIPT)).unwrap());
    run("spawnscope advise --patch >changes.diff && git apply -p0 changes.diff", directory);
    assert_ne!(fs::read(directory.join(SCRIPT)).unwrap(), original);
    assert_eq!(run(&example, directory).stdout, before);
    // The file has changed since the recording.
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 32);
    File::options().append(true).open(directory.join(SCRIPT)).unwrap().set_modified(later).unwrap();
    let again = run("spawnscope advise --patch", directory);
    let errors = String::from_utf8(again.stderr).unwrap();
    assert!(again.stdout.is_empty() && errors.contains("the patch is empty"), "{errors}");
    assert!(errors.contains("was modified after the recording began"), "{errors}");
}

#[test]
fn printed_commands_run_as_printed() {
    let recording = Recording::from_rows(UNPACK);
    let directory = recording.directory.path();
    fs::rename(recording.file(), directory.join("it's a recording.db")).unwrap();
    let mut printed = Vec::new();
    for verb in ["report", "report --full --top 2", "report --by line --top 1", "advise --all"] {
        let text =
            String::from_utf8(run(&format!("spawnscope {verb} \"it's a recording.db\""), directory).stdout).unwrap();
        let lines = text.lines().map(|line| line.trim_start().trim_start_matches("try: "));
        printed.extend(lines.filter(|line| line.starts_with("spawnscope ")).map(str::to_owned));
    }
    assert!(printed.iter().any(|line| line.starts_with("spawnscope whatif ")), "{printed:?}");
    for line in &printed {
        run(line, directory);
    }
}
