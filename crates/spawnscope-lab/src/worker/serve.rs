//! The main loop of a worker: allocates what its setting requires, reports that it is ready, and
//! performs each request until the end of its input.
//!
//! Memory and descriptors make launches slow. Memory affects them only if its pages exist, so all
//! of it is populated. If huge pages are requested, a worker checks that the kernel provides them.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, Usage, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::time::TimeValLike;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::launcher::{ChildProcess, Launcher, RunningChild};
use super::protocol::{Mechanism, Pages, Program, Reply, Request, Setting};
use crate::LabError;
use spawnscope_data::statistics::median;
use spawnscope_system::launch_timing::mappings::Memory;
use spawnscope_system::process::{die_with_parent, reap};
use spawnscope_system::procfs;

pub fn serve(setting: &str) -> io::Result<()> {
    end_group_with_parent();
    let mut pipes = Pipes::take_over()?;
    let setting: Setting = serde_json::from_str(setting)?;
    let mut ballast = match Ballast::allocate(&setting) {
        Ok(ballast) => ballast,
        Err(error) => return pipes.reply(&Err(error)),
    };
    pipes.reply(&Ok(Vec::new()))?;
    let mut line = String::new();
    while pipes.input.read_line(&mut line)? > 0 {
        let request: Request = serde_json::from_str(&line)?;
        pipes.reply(&perform(&request, &mut ballast))?;
        line.clear();
    }
    Ok(())
}

/// Ends the worker and its children when the parent dies, because a worker may have gigabytes of
/// memory. The parent-death signal does not reach grandchildren of the parent, so the worker leads
/// its own process group and kills that.
fn end_group_with_parent() {
    extern "C" fn kill_group(_: i32) {
        // SAFETY: a plain system call; the group belongs to this process.
        unsafe { libc::kill(0, libc::SIGKILL) };
    }
    let handler: extern "C" fn(i32) = kill_group;
    // SAFETY: plain system calls. setpgid fails only for a session leader, which leads a group
    // anyway.
    unsafe {
        libc::setpgid(0, 0);
        libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
    }
    die_with_parent(libc::SIGTERM);
}

/// The original standard input and output. Standard input, output and error are replaced by
/// /dev/null, so that output of children is not mistaken for a reply.
struct Pipes {
    input: BufReader<File>,
    output: File,
}

impl Pipes {
    fn take_over() -> io::Result<Pipes> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        dup2_stderr(&nothing)?;
        Ok(Pipes { input: BufReader::new(File::from(input)), output: File::from(output) })
    }

    fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        let mut line = serde_json::to_vec(reply)?;
        line.push(b'\n');
        self.output.write_all(&line)
    }
}

fn perform(request: &Request, ballast: &mut Ballast) -> Result<Vec<f64>, LabError> {
    match request {
        Request::Launch { mechanism, program, count } => launch(*mechanism, program, *count),
        Request::Grow { bytes } => ballast.grow(*bytes as usize).map(|()| Vec::new()),
        Request::Concurrent { paths, status } => launch_concurrently(paths, *status),
    }
}

fn launch(mechanism: Mechanism, program: &Program, count: u32) -> Result<Vec<f64>, LabError> {
    let mut launcher = Launcher::new(mechanism, program)?;
    if count > 1 {
        // A launch after other work finds cold caches, so the first one is not counted.
        launcher.time(mechanism)?;
    }
    let (mut walls, mut calls) = (Vec::new(), Vec::new());
    let before = cpu_ns();
    for _ in 0..count {
        let [wall, call] = launcher.time(mechanism)?;
        walls.push(nanos(wall));
        calls.push(nanos(call));
    }
    let after = cpu_ns();
    let [user, system] = [0, 1].map(|kind| (after[kind] - before[kind]) as f64 / f64::from(count.max(1)));
    Ok(vec![median(walls).unwrap_or_default(), median(calls).unwrap_or_default(), user + system, user, system])
}

fn nanos(span: Duration) -> f64 {
    span.as_nanos() as f64
}

/// Returns the user and the system time of this process and of its reaped children.
fn cpu_ns() -> [i64; 2] {
    let usages = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| getrusage(who).ok());
    [Usage::user_time, Usage::system_time]
        .map(|time| usages.iter().flatten().map(|usage| time(usage).num_nanoseconds()).sum())
}

/// Launches all files, and returns the time of each from its start until it was reaped. The
/// children are detached, so that a delayed exec of one does not delay the start of the others.
fn launch_concurrently(paths: &[String], status: i32) -> Result<Vec<f64>, LabError> {
    let programs: Vec<Program> = paths.iter().map(|path| Program::new([path]).with_status(status)).collect();
    let mechanism = Mechanism::VspawnDetached;
    let mut launchers =
        programs.iter().map(|program| Launcher::new(mechanism, program)).collect::<Result<Vec<_>, _>>()?;
    let mut running = Vec::new();
    let mut failure = None;
    for launcher in &mut launchers {
        let began = Instant::now();
        match launcher.start(mechanism) {
            Ok(RunningChild { process: ChildProcess::Vspawn(child), .. }) => running.push((began, child)),
            Ok(_) => failure = Some(LabError::Invalid("the child is not detached".to_owned())),
            Err(error) => failure = Some(error),
        }
    }
    let mut walls = Vec::new();
    // Wait for all children even after a failure. Otherwise a later wait would return one of them.
    while !running.is_empty() {
        let (pid, ended) = reap(-1).map_err(LabError::doing("wait for a child"))?;
        let Some(position) = running.iter().position(|(_, child)| child.id() == pid as u32) else {
            return Err(LabError::Invalid("an unknown child ended".to_owned()));
        };
        walls.push(nanos(running.swap_remove(position).0.elapsed()));
        if !libc::WIFEXITED(ended) || libc::WEXITSTATUS(ended) != status {
            failure = Some(LabError::Invalid(format!(
                "a child ended with {}, not with exit status: {status}",
                ExitStatus::from_raw(ended)
            )));
        }
    }
    failure.map_or(Ok(walls), Err)
}

const HUGE_PAGE_BYTES: usize = 2 << 20;
/// The minimum share of the memory that must be in huge pages, if these are requested.
const MIN_HUGE_SHARE: f64 = 0.9;

struct Ballast {
    memory: Vec<Memory>,
    _files: Vec<File>,
}

impl Ballast {
    fn allocate(setting: &Setting) -> Result<Ballast, LabError> {
        setting.files_limit.map_or(Ok(()), limit_files)?;
        let files = open_files(setting.open_files)?;
        let mut memory = Vec::new();
        if setting.memory_bytes > 0 {
            memory.push(map_populated(setting.memory_bytes as usize, setting.pages)?);
            if setting.pages == Pages::Huge {
                check_huge(setting.memory_bytes)?;
            }
        }
        Ok(Ballast { memory, _files: files })
    }

    fn grow(&mut self, bytes: usize) -> Result<(), LabError> {
        self.memory.push(map_populated(bytes, Pages::Small)?);
        Ok(())
    }
}

fn open_files(count: u64) -> Result<Vec<File>, LabError> {
    (0..count).map(|_| File::open("/dev/null").map_err(LabError::doing(format!("open {count} files")))).collect()
}

fn limit_files(wanted: u64) -> Result<(), LabError> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(LabError::doing("read a limit"))?;
    setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard).map_err(LabError::doing("set a limit"))
}

fn check_huge(bytes: u64) -> Result<(), LabError> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").map_err(LabError::doing("read smaps_rollup"))?;
    match procfs::field_bytes(&rollup, "AnonHugePages") {
        Some(huge) if huge as f64 >= MIN_HUGE_SHARE * bytes as f64 => Ok(()),
        Some(huge) => Err(LabError::Unavailable(format!(
            "the kernel put only {} of {} into huge pages",
            spawnscope_data::units::bytes(huge),
            spawnscope_data::units::bytes(bytes)
        ))),
        None => Err(LabError::Unavailable("this kernel does not report memory in huge pages".to_owned())),
    }
}

fn map_populated(bytes: usize, pages: Pages) -> Result<Memory, LabError> {
    let mapped = match pages {
        // Ignore failure: a kernel without huge pages rejects the advice, but needs none.
        Pages::Small => Memory::map(bytes).inspect(|memory| _ = memory.advise(libc::MADV_NOHUGEPAGE)),
        Pages::Huge => Memory::map_aligned(bytes, HUGE_PAGE_BYTES)
            .and_then(|memory| memory.advise(libc::MADV_HUGEPAGE).map(|()| memory)),
    };
    let doing = format!("allocate {}", spawnscope_data::units::bytes(bytes as u64));
    mapped.inspect(Memory::populate).map_err(LabError::doing(doing))
}
