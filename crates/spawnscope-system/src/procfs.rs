//! Reads the state of processes from /proc. If a value cannot be read, because the process is gone
//! or belongs to another user, the result is `None` or empty.

use std::ffi::c_long;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;

use spawnscope_data::event::Pid;

/// A part of the status of a process: its state, parent and tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The state letter of the first thread.
    state: u8,
    parent: Pid,
    /// The process that traces the first thread.
    pub tracer: Option<Pid>,
}

impl Status {
    pub fn read(pid: Pid) -> Option<Status> {
        Status::parse(&contents(pid, "status").ok()?)
    }

    fn parse(text: &[u8]) -> Option<Status> {
        // The process name may contain any bytes, but its newlines are escaped.
        let text = String::from_utf8_lossy(text);
        let tracer = field(&text, "TracerPid").and_then(|pid| pid.parse().ok()).map(Pid);
        Some(Status {
            state: field(&text, "State")?.bytes().next()?,
            parent: Pid(field(&text, "PPid")?.parse().ok()?),
            tracer: tracer.filter(|tracer| tracer.0 != 0),
        })
    }

    pub fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }

    pub fn is_stopped_by_tracer(&self) -> bool {
        self.state == b't' && self.tracer.is_some()
    }

    pub fn is_asleep(&self) -> bool {
        self.state == b'S'
    }

    pub fn is_runnable(&self) -> bool {
        self.state == b'R'
    }

    /// Whether the process has ended, even if it was not reaped.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Reads a file of a process. `fs::read` would ask for its size, which is 0, and begin with pieces
/// of a few bytes.
pub fn contents(process: Pid, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8192);
    File::open(format!("/proc/{}/{name}", process.0))?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the value of a field of a file with lines such as `Name: value`.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns a field that is a number of bytes, which the kernel shows in kilobytes.
pub fn field_bytes(text: &str, name: &str) -> Option<u64> {
    let kilobytes: u64 = field(text, name)?.trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes * 1024)
}

pub fn resident_bytes(process: Pid) -> Option<u64> {
    let text = contents(process, "status").ok()?;
    field_bytes(&String::from_utf8_lossy(&text), "VmRSS")
}

pub fn status_field(thread: Pid, name: &str) -> Option<String> {
    let text = contents(thread, "status").ok()?;
    field(&String::from_utf8_lossy(&text), name).map(str::to_owned)
}

/// Returns the id of a thread in its own pid namespace, as the thread itself sees it.
pub fn innermost_id(thread: Pid) -> Option<Pid> {
    status_field(thread, "NSpid")?.split_ascii_whitespace().next_back()?.parse().ok().map(Pid)
}

pub fn threads(pid: Pid) -> Vec<Pid> {
    let entries = fs::read_dir(format!("/proc/{}/task", pid.0)).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Pid)).collect()
}

pub fn arguments(pid: Pid) -> Vec<Vec<u8>> {
    let bytes = fs::read(format!("/proc/{}/cmdline", pid.0)).unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    match bytes {
        [] => Vec::new(),
        _ => bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
    }
}

/// Returns a variable of the environment with which a process began.
pub fn variable(pid: Pid, name: &[u8]) -> Option<Vec<u8>> {
    let variables = contents(pid, "environ").ok()?;
    variables.split(|byte| *byte == 0).find_map(|each| Some(each.strip_prefix(name)?.strip_prefix(b"=")?.to_vec()))
}

pub fn entry_point(pid: Pid) -> Option<u64> {
    auxiliary_value(pid, libc::AT_ENTRY as usize).map(|address| address as u64)
}

fn auxiliary_value(pid: Pid, wanted: usize) -> Option<usize> {
    let words = fs::read(format!("/proc/{}/auxv", pid.0)).ok()?;
    let (words, _) = words.as_chunks::<{ size_of::<usize>() }>();
    let (entries, _) = words.as_chunks::<2>();
    let entries = entries.iter().map(|entry| entry.map(usize::from_ne_bytes));
    entries.into_iter().find(|[kind, _]| *kind == wanted).map(|[_, value]| value)
}

/// Returns the file name that was passed to execve; for a script, the script itself. The process
/// can change it after its exec.
pub fn program(pid: Pid) -> Option<Vec<u8>> {
    let address = auxiliary_value(pid, libc::AT_EXECFN as usize)?;
    let memory = File::open(format!("/proc/{}/mem", pid.0)).ok()?;
    let mut path = vec![0; libc::PATH_MAX as usize];
    let length = memory.read_at(&mut path, address as u64).ok()?;
    path.truncate(length);
    let end = path.iter().position(|byte| *byte == 0)?;
    path.truncate(end);
    Some(path)
}

pub fn working_directory(pid: Pid) -> Option<Vec<u8>> {
    link(pid, "cwd")
}

pub fn executable(pid: Pid) -> Option<Vec<u8>> {
    link(pid, "exe")
}

fn link(pid: Pid, name: &str) -> Option<Vec<u8>> {
    let target = fs::read_link(format!("/proc/{}/{name}", pid.0)).ok()?;
    Some(target.into_os_string().into_vec())
}

pub fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid))
}

pub fn name(pid: Pid) -> Option<Vec<u8>> {
    let name = fs::read(format!("/proc/{}/comm", pid.0)).ok()?;
    Some(name.trim_ascii_end().to_vec())
}

pub fn tree(root: Pid) -> Vec<Pid> {
    let parents: Vec<(Pid, Pid)> = processes().filter_map(|pid| Some((pid, Status::read(pid)?.parent))).collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        let children = parents.iter().filter(|(_, its_parent)| *its_parent == parent);
        tree.extend(children.map(|(child, _)| *child));
        next += 1;
    }
    tree
}

pub fn has_perf_events(pid: Pid) -> bool {
    let files = fs::read_dir(format!("/proc/{}/fd", pid.0)).into_iter().flatten().flatten();
    let mut names = files.filter_map(|file| fs::read_link(file.path()).ok());
    names.any(|name| name.as_os_str() == "anon_inode:[perf_event]")
}

/// Whether the first thread of a process is in a system call that waits for files, such as poll.
/// `None` without permission to read this.
pub fn waits_for_files(pid: Pid) -> Option<bool> {
    let text = fs::read_to_string(format!("/proc/{}/syscall", pid.0)).ok()?;
    Some(blocking_call(&text).is_some_and(|(number, _)| FILE_WAITS.contains(&number)))
}

/// Parses /proc/PID/syscall: returns the number and the first two arguments of the call that a
/// thread is blocked in; `None` if it is not blocked.
pub fn blocking_call(text: &str) -> Option<(c_long, [u64; 2])> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    Some((number, [argument()?, argument()?]))
}

#[cfg(target_arch = "x86_64")]
const FILE_WAITS: [c_long; 6] = [
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
];
#[cfg(not(target_arch = "x86_64"))]
const FILE_WAITS: [c_long; 3] = [libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait];

pub fn yama_scope() -> Option<u8> {
    let text = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_process() -> Pid {
        Pid(i32::try_from(std::process::id()).unwrap())
    }

    #[test]
    fn a_process_in_poll_waits_for_files_but_a_process_in_sleep_does_not() {
        for (script, expected) in
            [("import select; select.poll().poll(20000)", true), ("import time; time.sleep(20)", false)]
        {
            let mut child = std::process::Command::new("python3").args(["-c", script]).spawn().unwrap();
            let pid = Pid(i32::try_from(child.id()).unwrap());
            let until = std::time::Instant::now() + std::time::Duration::from_secs(15);
            let mut consecutive = 0;
            while consecutive < 5 && std::time::Instant::now() < until {
                let is_asleep = Status::read(pid).is_some_and(|status| status.is_asleep());
                let is_as_expected = is_asleep && waits_for_files(pid) == Some(expected);
                consecutive = if is_as_expected { consecutive + 1 } else { 0 };
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(consecutive, 5, "{expected}");
        }
    }

    #[test]
    fn a_status_is_read_whatever_the_name_of_the_process() {
        let text = b"Name:\tState:\\nPPid:\t7\xff\nUmask:\t0022\nState:\tt (tracing stop)\nPPid:\t41\nTracerPid:\t40\n";
        let status = Status::parse(text).unwrap();
        assert_eq!((status.state, status.parent, status.tracer), (b't', Pid(41), Some(Pid(40))));
        assert!(status.is_stopped() && status.is_stopped_by_tracer() && !status.is_asleep());
        let untraced = Status::parse(b"State:\tT (stopped)\nPPid:\t1\nTracerPid:\t0\n").unwrap();
        assert!(untraced.is_stopped() && !untraced.is_stopped_by_tracer());
        assert_eq!(Status::parse(b""), None);
    }

    #[test]
    fn the_state_of_this_process_is_read() {
        use std::os::unix::ffi::OsStrExt;
        let given: Vec<Vec<u8>> = std::env::args_os().map(|argument| argument.as_bytes().to_vec()).collect();
        assert_eq!(arguments(this_process()), given);
        let program = program(this_process()).unwrap();
        let name = std::env::current_exe().unwrap();
        assert!(program.ends_with(name.file_name().unwrap().as_bytes()));
        assert!(!Status::read(this_process()).unwrap().is_stopped());
        assert!(!has_perf_events(this_process()));
        assert!(innermost_id(this_process()).is_some());
    }

    #[test]
    fn a_tree_contains_all_descendants_and_no_other_process() {
        let mut outer = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(outer.stdout.take().unwrap()), &mut line).unwrap();
        let inner = Pid(line.trim().parse().unwrap());
        let shell = Pid(i32::try_from(outer.id()).unwrap());
        let found = tree(shell);
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(inner.0), nix::sys::signal::Signal::SIGKILL).unwrap();
        outer.wait().unwrap();
        assert_eq!(found, [shell, inner]);
    }

    #[test]
    fn a_process_that_is_gone_has_no_values() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid(i32::try_from(child.id()).unwrap());
        child.wait().unwrap();
        assert_eq!(Status::read(pid), None);
        assert_eq!(arguments(pid), Vec::<Vec<u8>>::new());
        assert_eq!(program(pid), None);
        assert_eq!(innermost_id(pid), None);
    }
}
