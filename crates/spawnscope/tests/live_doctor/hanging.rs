//! File systems and scanners that are slow, or never answer; and a doctor that is killed while it
//! measures.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::examination::{Examination, examine};
use crate::support::prelude::*;

/// The doctor must finish within this time. The processes that block it in these tests give up only
/// after 50 s.
const MAX_DURATION: Duration = Duration::from_secs(30);

fn in_time<T>(work: impl FnOnce() -> T) -> T {
    within(MAX_DURATION, work)
}

fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    assert!(began.elapsed() < limit, "this took {:?}", began.elapsed());
    result
}

/// Runs a check while a file system in `directory` answers with this delay.
fn check_with_delay(directory: &Path, microseconds: &str, words: &[&str], check: &str) -> Examination {
    let file_system = path("file_system");
    let mut launcher = vec![file_system.as_os_str(), directory.as_os_str(), OsStr::new(microseconds)];
    launcher.extend(words.iter().map(OsStr::new));
    in_time(|| examine(&launcher, check))
}

#[apply(live_test)]
#[needs(Fuse)]
fn directories_that_never_answer_are_reported_without_delaying_the_doctor() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let hung = directory.path().display().to_string();
    let path = format!("PATH={hung}/bin:/usr/bin");
    // On a busy machine, the doctor may not get as far as trying the directory.
    best_of_three(|| {
        let examination = check_with_delay(directory.path(), "-1", &["env", &path], "search-path");
        let finding = examination.find("problem", &["PATH has 1 directory", &hung, "no answer within"])?;
        assert_eq!(finding["effect_is_lower_bound"], true, "{finding:#}");
        ok_if(examination.findings().len() == 1, || examination.describe())
    });
    // The doctor starts programs without this directory in PATH.
    check_with_delay(directory.path(), "-1", &["env", &path], "interpreters");
    for variable in ["TMPDIR", "HOME"] {
        let variable = format!("{variable}={hung}/deep");
        best_of_three(|| {
            let examination = check_with_delay(directory.path(), "-1", &["env", &variable], "file-systems");
            examination.find("problem", &["does not answer", "(fuse)"])?;
            examination.check_timed(&["exec_static"])
        });
    }
}

#[apply(live_test)]
#[needs(Fuse)]
fn only_the_slow_directory_of_path_is_called_slow() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = format!("PATH={}:/usr/bin:/bin:/usr/sbin:/sbin", directory.path().display());
    best_of_three(|| {
        let examination = check_with_delay(directory.path(), "30000", &["env", &path], "search-path");
        let finding = examination.find("problem", &["PATH has 1 directory", "(FUSE)"])?;
        let is_slow = finding["effect_ns"].as_u64() >= Some(30_000_000);
        ok_if(is_slow && !finding["evidence"].to_string().contains("/sbin"), || examination.describe())
    });
}

#[apply(live_test)]
#[needs(Fuse, PidNs)]
fn a_slow_file_system_for_temporary_files_is_not_a_scanner() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let temporary = format!("TMPDIR={}", directory.path().display());
    let words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "env", &temporary];
    // Within the doctor's time for such a file system, a busy machine launches too few programs
    // there for a conclusion.
    best_of_three(|| {
        let examination = check_with_delay(directory.path(), "3000", &words, "file-systems");
        let finding = examination.find("problem", &["temporary files", "(FUSE)", "from memory"])?;
        ok_if(finding["effect_ns"].as_u64() >= Some(3_000_000), || examination.describe())
    });
    best_of_three(|| check_with_delay(directory.path(), "3000", &words, "scanners").check_silence());
}

#[apply(live_test)]
#[needs(Fanotify, PidNs)]
fn a_scanner_that_blocks_opens_does_not_delay_the_doctor() {
    for (scanner, words) in [
        ("holds_opens", &["test-scanner"][..]),
        ("holds_opens_for_ever", &["test-scanner", "could not even be created within"]),
    ] {
        let scanner = path(scanner);
        best_of_three(|| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let launcher = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"].map(OsStr::new);
            let launcher = [&launcher[..], &[scanner.as_os_str(), directory.path().as_os_str()]].concat();
            let examination = in_time(|| examine(&launcher, "scanners"));
            examination.find("problem", words)?;
            examination.check_timed(&["fork", "exec_dynamic"])
        });
    }
}

/// The programs hang in an open that never ends, where no signal reaches them. Takes nearly 5 s,
/// the time of a doctor whose programs all hang: only a real file system leaves a program where not
/// even SIGKILL ends it. How long the doctor waits for a supervisor is also a test of `programs`.
#[apply(live_test)]
#[needs(Fuse)]
fn programs_that_hang_in_the_kernel_do_not_delay_the_doctor() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = format!("PYTHONPATH={}/library", directory.path().display());
    let examination = check_with_delay(directory.path(), "-1", &["env", &path], "interpreters");
    let finding = examination.expect("problem", &["Python spends more than"]);
    assert_eq!(finding["effect_is_lower_bound"], true, "{finding:#}");
}

/// The program that the doctor starts ignores signals and uses a CPU.
#[apply(live_test)]
fn the_doctor_leaves_no_program_whatever_signal_ends_it() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let script = "#!/bin/sh\ntrap '' HUP TERM INT; echo $$ >began; while :; do :; done\n";
        let program = home.path().join("python3");
        write_program(&program, script);
        let mut command = Command::new("env");
        command.args(["--default-signal", SPAWNSCOPE, "doctor", "interpreters"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", home.path().display())).current_dir(home.path());
        let doctor = Running::start(&mut command);
        let pid = await_some("a shell", || {
            let pid = std::fs::read_to_string(home.path().join("began")).ok()?;
            (!pid.trim().is_empty()).then(|| pid.trim().to_owned())
        });
        kill(doctor.pid(), signal).expect("the doctor runs");
        assert_eq!(doctor.finish().code(), 128 + signal as i32);
        // A process that has ended may not have been reaped.
        await_some("the end of what the doctor left", || {
            std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().is_empty().then_some(())
        });
    }
}

/// The directory exists for half a second. A busy machine may leave the doctor no time to create
/// it, or the test no time to find it: then the doctor ends by itself, and another one is started.
/// It must leave nothing in either case.
#[apply(live_test)]
fn the_doctor_leaves_no_directory_whatever_signal_ends_it() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
        best_of_three(|| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            // The tests may run as a background job, with signals ignored.
            let mut command = Command::new("env");
            command.args(["--default-signal", SPAWNSCOPE, "doctor", "open-files"]).env("TMPDIR", directory.path());
            let mut doctor = Running::start(&mut command);
            await_some("the doctor's directory, or its end", || {
                (count_entries(directory.path()) > 0 || doctor.has_ended()).then_some(())
            });
            // The pid of a doctor that has ended is not used again before it is reaped.
            if !doctor.has_ended() {
                kill(doctor.pid(), signal).expect("the doctor was not reaped");
            }
            let code = doctor.finish().code();
            await_some("the end of what the doctor left", || (count_entries(directory.path()) == 0).then_some(()));
            ok_if(code == 128 + signal as i32, || format!("the doctor ended before {signal}: {code}"))
        });
    }
}

fn count_entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).expect("the directory").count()
}

/// The keeper removes the directory when it ends.
#[apply(live_test)]
#[needs(Cc)]
fn on_a_kernel_without_close_range_the_doctor_leaves_no_directory_and_no_process() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let temporary = format!("TMPDIR={}", directory.path().display());
    let launcher = [&word("without_close_range"), "/usr/bin/env", &temporary];
    let examination = examine(launcher, "open-files");
    assert!(examination.cost("exec_static").is_some());
    await_some("the end of the keeper", || (count_entries(directory.path()) == 0).then_some(()));
}

/// Each directory is tried or reported, and none is called slow.
#[apply(live_test)]
fn a_path_of_many_directories_does_not_delay_the_doctor() {
    let gone: Vec<String> = (0..1500).map(|number| format!("/nowhere/{number}")).collect();
    let path = format!("PATH=/usr/bin:/bin:{}", gone.join(":"));
    best_of_three(|| {
        let examination = in_time(|| examine(["/usr/bin/env", &path], "search-path"));
        examination.find("problem", &["useless", "missing: /nowhere/0"])?;
        let is_tried = !examination.unseen().contains("/usr/bin");
        ok_if(is_tried && !has_title_with(&examination, &["slow"]), || examination.describe())
    });
}

/// Whether a finding's title contains one of these words.
fn has_title_with(examination: &Examination, words: &[&str]) -> bool {
    let mut titles = examination.findings().iter().filter_map(|finding| finding["title"].as_str());
    titles.any(|title| words.iter().any(|word| title.contains(word)))
}

/// A busy process that ends with the test, or after 200 s.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> BusyLoop {
        let mut command = Command::new("timeout");
        command.args(["200", "sh", "-c", "while :; do :; done"]);
        BusyLoop(command.spawn().expect("timeout runs"))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        // timeout passes the signal on.
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// The doctor runs in separate namespaces, in which there is no scanner. It takes seconds, since it
/// waits for a CPU: which waits the kernel counts, and which delays they hide, only a busy machine
/// shows. What follows from disturbed times is tested in spawnscope-doctor.
#[apply(live_test)]
#[needs(MountNs, PidNs)]
fn time_in_the_run_queue_is_not_blamed_on_scanners_or_parents() {
    const LIMIT: Duration = Duration::from_secs(100);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let _loops: Vec<BusyLoop> = (0..processors * 2).map(|_| BusyLoop::start()).collect();
    let launcher = "nice -n 19 unshare --mount --pid --fork --kill-child --mount-proc";
    let blaming_system = ["scans", "slow file systems", "cannot be written"];
    let blaming_launches = ["forks are slow", "does not finish"];
    let blaming = [&blaming_system[..], &blaming_launches].concat();
    best_of_three(|| {
        let checks = "scanners large-parents search-path";
        let examination = within(LIMIT, || examine(launcher.split(' '), checks));
        ok_if(!has_title_with(&examination, &blaming), || examination.describe())
    });
}
