//! File systems and scanners that are slow, or never answer; and a doctor that is killed while it measures.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::examined::{Examined, examine};
use crate::findings::{described, found, silent, timed};
use crate::support::attempts::{best_of_three, ok_if};
use crate::support::run::{Running, SPAWNSCOPE, await_some};
use crate::support::workloads::path;
use crate::support::{apply, live_test};

/// The processes that block something in these tests give up only after 50 s.
const NOT_HELD_UP: Duration = Duration::from_secs(30);

fn in_time<T>(work: impl FnOnce() -> T) -> T {
    within(NOT_HELD_UP, work)
}

fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    assert!(began.elapsed() < limit, "held up for {:?}", began.elapsed());
    result
}

/// Runs a check while a file system in `directory` answers with this delay.
fn check_with_delay(directory: &Path, microseconds: &str, words: &[&str], check: &str) -> Examined {
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
    // On a busy machine, the doctor may not get as far as trying it.
    best_of_three(|| {
        let examined = check_with_delay(directory.path(), "-1", &["env", &path], "search-path");
        let finding = found(
            &examined,
            "problem",
            &["PATH has 1 directory", &hung, "no answer within"],
        )?;
        assert_eq!(finding["effect_is_lower_bound"], true, "{finding:#}");
        ok_if(examined.all().len() == 1, || described(&examined))
    });
    // Programs are started without it in PATH.
    check_with_delay(directory.path(), "-1", &["env", &path], "interpreters");
    for variable in ["TMPDIR", "HOME"] {
        let variable = format!("{variable}={hung}/deep");
        best_of_three(|| {
            let examined = check_with_delay(directory.path(), "-1", &["env", &variable], "file-systems");
            found(&examined, "problem", &["does not answer", "(fuse)"])?;
            timed(&examined, &["exec_static"])
        });
    }
}

#[apply(live_test)]
#[needs(Fuse)]
fn one_slow_directory_of_path_makes_no_other_one_slow() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = format!("PATH={}:/usr/bin:/bin:/usr/sbin:/sbin", directory.path().display());
    best_of_three(|| {
        let examined = check_with_delay(directory.path(), "30000", &["env", &path], "search-path");
        let finding = found(&examined, "problem", &["PATH has 1 directory", "(FUSE)"])?;
        let is_slow = finding["effect_ns"].as_u64() >= Some(30_000_000);
        ok_if(is_slow && !finding["evidence"].to_string().contains("/sbin"), || {
            described(&examined)
        })
    });
}

#[apply(live_test)]
#[needs(Fuse, PidNs)]
fn a_slow_file_system_for_temporary_files_is_not_a_scanner() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let temporary = format!("TMPDIR={}", directory.path().display());
    let words = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "env",
        &temporary,
    ];
    // Within the doctor's time for such a file system, a busy machine launches too few programs there for a conclusion.
    best_of_three(|| {
        let examined = check_with_delay(directory.path(), "3000", &words, "file-systems");
        let finding = found(&examined, "problem", &["temporary files", "(FUSE)", "from memory"])?;
        ok_if(finding["effect_ns"].as_u64() >= Some(3_000_000), || {
            described(&examined)
        })
    });
    best_of_three(|| silent(&check_with_delay(directory.path(), "3000", &words, "scanners")));
}

#[apply(live_test)]
#[needs(Fanotify, PidNs)]
fn a_scanner_that_holds_opens_does_not_hold_the_doctor_up() {
    for (scanner, words) in [
        ("holds_opens", &["test-scanner"][..]),
        (
            "holds_opens_for_ever",
            &["test-scanner", "could not even be created within"],
        ),
    ] {
        let scanner = path(scanner);
        best_of_three(|| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let launcher = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"].map(OsStr::new);
            let launcher = [&launcher[..], &[scanner.as_os_str(), directory.path().as_os_str()]].concat();
            let examined = in_time(|| examine(&launcher, "scanners"));
            found(&examined, "problem", words)?;
            timed(&examined, &["fork", "exec_dynamic"])
        });
    }
}

/// An exec or an open that never ends, in a program that no signal reaches.
#[apply(live_test)]
#[needs(Fuse)]
fn programs_that_hang_in_the_kernel_do_not_hold_the_doctor_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = tempfile::tempdir().expect("a temporary directory");
    let hung = directory.path().display().to_string();
    std::fs::write(home.path().join(".bashrc"), format!(". {hung}/file\n")).expect("the file is written");
    let variable = format!("HOME={}", home.path().display());
    let words = ["env", "-u", "BASH_ENV", "-u", "ENV", &variable];
    let examined = check_with_delay(directory.path(), "-1", &words, "shell-start");
    let finding = examined.expect("problem", &["bash's start-up files take more than"]);
    assert_eq!(finding["effect_is_lower_bound"], true, "{finding:#}");
    let variable = format!("PYTHONPATH={hung}/library");
    check_with_delay(directory.path(), "-1", &["env", &variable], "interpreters");
}

/// The same with a program that ignores signals and uses a CPU.
#[apply(live_test)]
fn whatever_signal_ends_the_doctor_it_leaves_no_program() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let script = "trap '' HUP TERM INT; echo $BASHPID >began; while :; do :; done\n";
        std::fs::write(home.path().join(".bashrc"), script).expect("the file is written");
        let mut command = Command::new("env");
        command.args(["--default-signal", SPAWNSCOPE, "doctor", "shell-start"]);
        command.env("HOME", home.path()).current_dir(home.path());
        let doctor = Running::start(&mut command);
        let pid = await_some("a shell", || {
            let pid = std::fs::read_to_string(home.path().join("began")).ok()?;
            (!pid.trim().is_empty()).then(|| pid.trim().to_owned())
        });
        kill(doctor.pid(), signal).expect("the doctor runs");
        assert_eq!(doctor.finish().code(), 128 + signal as i32);
        // A process that has ended may not have been reaped.
        let command_line = || std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        await_some("its end", || command_line().is_empty().then_some(()));
    }
}

/// It measures for a while, because it loads a slow library.
#[apply(live_test)]
#[needs(Cc)]
fn whatever_signal_ends_the_doctor_it_leaves_no_directory() {
    let library = path("libslow.so");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let entries = || std::fs::read_dir(directory.path()).expect("the directory").count();
        // The tests may run as a background job, with signals ignored.
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            .arg(format!("LD_PRELOAD={}", library.display()))
            .args([SPAWNSCOPE, "doctor", "launch-cost"])
            .env("TMPDIR", directory.path());
        let doctor = Running::start(&mut command);
        await_some("the doctor's directory", || (entries() > 0).then_some(()));
        kill(doctor.pid(), signal).expect("the doctor runs");
        assert_eq!(doctor.finish().code(), 128 + signal as i32);
        await_some("its end", || (entries() == 0).then_some(()));
    }
}

/// The keeper removes the directory when it ends.
#[apply(live_test)]
#[needs(Cc)]
fn on_a_kernel_without_close_range_it_leaves_no_directory_and_no_process() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let temporary = format!("TMPDIR={}", directory.path().display());
    let launcher = [
        path("without_close_range").as_os_str(),
        OsStr::new("/usr/bin/env"),
        OsStr::new(&temporary),
    ]
    .map(OsStr::to_owned);
    let launcher: Vec<&OsStr> = launcher.iter().map(AsRef::as_ref).collect();
    let examined = examine(&launcher, "launch-cost");
    assert!(examined.cost("exec_static").is_some());
    let entries = || std::fs::read_dir(directory.path()).expect("the directory").count();
    await_some("the end of the keeper", || (entries() == 0).then_some(()));
}

/// Each directory is tried or reported; none is reported as silent.
#[apply(live_test)]
fn a_path_of_many_directories_does_not_hold_the_doctor_up() {
    let gone: Vec<String> = (0..1500).map(|number| format!("/nowhere/{number}")).collect();
    let path = format!("PATH=/usr/bin:/bin:{}", gone.join(":"));
    best_of_three(|| {
        let examined = in_time(|| examine(&["/usr/bin/env".as_ref(), path.as_ref()], "search-path"));
        found(&examined, "problem", &["useless", "missing: /nowhere/0"])?;
        let is_asked = !examined.unseen().contains("/usr/bin");
        ok_if(is_asked && !has_title_with(&examined, &["slow"]), || {
            described(&examined)
        })
    });
}

/// Whether a finding's title contains one of these words.
fn has_title_with(examined: &Examined, words: &[&str]) -> bool {
    let mut titles = examined.all().iter().filter_map(|finding| finding["title"].as_str());
    titles.any(|title| words.iter().any(|word| title.contains(word)))
}

/// A process that ends with the test, or soon in any case.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> BusyLoop {
        let mut command = Command::new("timeout");
        command.args(["200", "sh", "-c", "while :; do :; done"]);
        BusyLoop(command.spawn().expect("timeout is there"))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        // timeout passes the signal on.
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// In a separate namespace without a scanner.
#[apply(live_test)]
#[needs(MountNs, PidNs)]
fn time_in_the_run_queue_beside_busy_loops_is_blamed_on_no_program() {
    const LIMIT: Duration = Duration::from_secs(100);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let _loops: Vec<BusyLoop> = (0..processors * 2).map(|_| BusyLoop::start()).collect();
    let launcher = [
        "nice",
        "-n",
        "19",
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ];
    for check in ["scanners", "launch-cost", "large-parents", "search-path"] {
        let blaming = [
            "scans",
            "one launch takes",
            "forks are slow",
            "slow file systems",
            "cannot be written",
            "does not finish",
        ];
        best_of_three(|| {
            let examined = within(LIMIT, || examine(&launcher.map(OsStr::new), check));
            ok_if(!has_title_with(&examined, &blaming), || described(&examined))
        });
    }
}
