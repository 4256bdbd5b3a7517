//! On-access scanners: programs that delay an open or exec until they have scanned the file. The
//! check finds them by fanotify permission marks, by process name, and by their effect: it compares
//! the first launch of a fresh file with later ones.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::machine::{Process, containing_mount};
use crate::measure::{Scan, StuckOperation};
use crate::{Effect, Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Process names (at most 15 bytes), and the products that the processes belong to.
const KNOWN_DAEMONS: [(&str, &str); 19] = [
    ("fapolicyd", "fapolicyd"),
    ("clamonacc", "ClamAV on-access"),
    ("wdavdaemon", "Microsoft Defender"),
    ("mdatp", "Microsoft Defender"),
    ("falcon-sensor", "CrowdStrike Falcon"),
    ("falcon-sensor-b", "CrowdStrike Falcon"),
    ("falcond", "CrowdStrike Falcon"),
    ("savd", "Sophos"),
    ("savscand", "Sophos"),
    ("sophos_threat_d", "Sophos"),
    ("sentinelone-age", "SentinelOne"),
    ("s1-agent", "SentinelOne"),
    ("cbagentd", "Carbon Black"),
    ("cbdaemon", "Carbon Black"),
    ("ds_agent", "Trend Micro Deep Security"),
    ("ds_am", "Trend Micro Deep Security"),
    ("kesl", "Kaspersky Endpoint Security"),
    ("mfetpd", "Trellix"),
    ("esets_daemon", "ESET"),
];
/// The mask of FAN_OPEN_PERM, FAN_ACCESS_PERM, FAN_OPEN_EXEC_PERM and FAN_PRE_ACCESS.
const PERMISSION_EVENTS: u64 = 0x17_0000;
/// The time limit for the examination of descriptors. A machine may have hundreds of thousands.
const TIMEOUT: Duration = Duration::from_millis(300);
/// If no process holds permission marks, a delay of at least this counts as a scan. Reading a fresh
/// file from disk takes less.
const MIN_DELAY_WITHOUT_MARKS: Nanos = Nanos(400_000);
/// Replaces `MIN_DELAY_WITHOUT_MARKS` on a busy machine, where other programs displace cached files
/// between launches. Without this, four busy loops made a doctor at nice 19 report a scanner in
/// each of three runs.
const MIN_DELAY_WITHOUT_MARKS_WHEN_BUSY: Nanos = Nanos(2_000_000);
/// Replaces `MIN_DELAY_WITHOUT_MARKS` if a process holds permission marks.
const MIN_DELAY_WITH_MARKS: Nanos = Nanos(50_000);
/// If one launch is delayed by less than this, a queue cannot be distinguished from concurrent
/// launches that share the CPUs.
const MIN_QUEUE_DELAY: Nanos = Nanos(1_000_000);
/// Replaces `MIN_QUEUE_DELAY` if other programs share the CPUs, too.
const MIN_QUEUE_DELAY_WHEN_BUSY: Nanos = Nanos(10_000_000);
/// If n launches queue, the last is late by at least this fraction of n times the delay of one.
const MIN_QUEUE_SHARE: f64 = 0.5;
/// If n concurrent launches do not queue, the last one is late by at most this fraction of n times
/// the delay of one.
const MAX_NO_QUEUE_SHARE: f64 = 0.3;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let marks = PermissionMarks::find(examination.machine, &examination.processes);
    report_not_examined(examination, &marks, findings);
    let scan = examination.measured.scan.as_ref();
    let min_delay = match scan {
        _ if !marks.holders.is_empty() => MIN_DELAY_WITH_MARKS,
        Some(scan) if scan.is_disturbed => MIN_DELAY_WITHOUT_MARKS_WHEN_BUSY,
        _ => MIN_DELAY_WITHOUT_MARKS,
    };
    let delay = scan.and_then(|scan| Delay::find(scan, min_delay));
    let stuck = scan.and_then(|scan| scan.stuck);
    if let Some(scan) = scan.filter(|scan| delay.is_none() && stuck.is_none() && !scan.is_conclusive()) {
        findings.add_not_examined(match scan.is_disturbed {
            true => "whether first launches of fresh files are slower: the machine is too busy",
            false if scan.memory_launches.is_empty() => {
                "whether each launch is scanned: the kernel cannot execute files from memory for comparison"
            }
            false => "whether first launches of fresh files are slower: too few could be timed",
        });
    }
    // A daemon that causes no delay may have its marks on other file systems.
    if marks.holders.is_empty() && delay.is_none() && stuck.is_none() {
        return;
    }
    let matters = delay.is_some() || stuck.is_some();
    let mut finding = Finding::problem_if(matters, title(&marks.names(), delay.as_ref(), stuck))
        .effect(delay.map(|delay| Effect::measured(delay.span, delay.affected)).or(stuck.map(stuck_effect)));
    for line in suspects(examination, &marks) {
        finding = finding.evidence(line);
    }
    if let Some(scan) = scan {
        finding = finding
            .evidence_if(times_sentence(scan))
            .evidence_if(delay.and_then(|delay| queue_sentence(scan, delay.span)));
    }
    findings.add(with_fix(finding));
}

/// Returns a sentence for each process that holds marks or, if there is none, for each process with
/// a known name.
fn suspects(examination: &Examination<'_>, marks: &PermissionMarks<'_>) -> Vec<String> {
    if !marks.holders.is_empty() {
        return marks.holders.iter().map(|process| holder_line(process)).collect();
    }
    let known = examination.processes.iter().filter(|process| product(&process.name).is_some());
    known.map(known_line).collect()
}

fn report_not_examined(examination: &Examination<'_>, marks: &PermissionMarks<'_>, findings: &mut Findings) {
    if let Some(why) = &marks.incomplete {
        findings.add_not_examined(why.as_str());
    }
    if hides_processes(examination.machine) {
        findings.add_not_examined("processes of other users: /proc is mounted with hidepid");
    }
    if examination.environment.container.is_some() {
        findings.add_not_examined("scanners on the host, except for their delays: this is a container");
    }
    if examination.measured.scan.is_none() {
        findings.add_not_examined(match examination.measured.remote_scan {
            Some(_) => {
                "first launches of fresh files: only timed on a file system that another machine or process serves"
            }
            None => "first launches of fresh files: they could not be timed",
        });
    }
}

fn holder_line(process: &Process) -> String {
    let Process { name, pid, .. } = process;
    let product = product(name).filter(|product| product != name);
    let product = product.map_or(String::new(), |product| format!(", {product}"));
    format!("{name} (process {pid}{product}) holds fanotify permission marks: opens or execs wait for its answer")
}

fn known_line(process: &Process) -> String {
    let Process { name, pid, .. } = process;
    let product = product(name).unwrap_or_default();
    format!("{name} (process {pid}) is running; it belongs to {product}")
}

/// A measured delay of launches.
#[derive(Clone, Copy)]
struct Delay {
    span: Nanos,
    /// Which launches are delayed.
    affected: &'static str,
}

impl Delay {
    fn find(scan: &Scan, min_delay: Nanos) -> Option<Delay> {
        let first = scan.first_delay(min_delay).map(|span| Delay { span, affected: "the first launch of each file" });
        // A scanner without a cache examines each launch.
        first.or_else(|| scan.later_delay(min_delay).map(|span| Delay { span, affected: "each launch" }))
    }
}

/// Returns the effect of an operation that did not finish: at least the time until it was
/// abandoned.
fn stuck_effect(stuck: StuckOperation) -> Effect {
    let (span, affected) = match stuck {
        StuckOperation::Creation(span) => (span, "each new file"),
        StuckOperation::Launch(span) => (span, "the first launch of each file"),
    };
    Effect { is_lower_bound: true, ..Effect::measured(span, affected) }
}

/// Returns the title of the finding. Only a process that holds marks is named as the cause.
fn title(holders: &str, delay: Option<&Delay>, stuck: Option<StuckOperation>) -> String {
    match delay {
        Some(Delay { span, affected }) if holders.is_empty() => {
            format!("{affected} takes {} longer: an unknown program scans the file", units::time(*span))
        }
        Some(Delay { span, affected }) => format!("{holders} delays {affected} by {}", units::time(*span)),
        None if stuck.is_some() => {
            let who = if holders.is_empty() { "an unknown program" } else { holders };
            match stuck {
                Some(StuckOperation::Creation(_)) => format!("new files cannot be written: {who} blocks them"),
                _ => format!("the first launch of a file does not finish: {who} blocks it"),
            }
        }
        None => format!("{holders} scans files when they are opened or executed, but no delay was seen"),
    }
}

fn times_sentence(scan: &Scan) -> Option<String> {
    match scan.stuck {
        Some(StuckOperation::Creation(timeout)) => {
            let timeout = units::time(timeout);
            return Some(format!("files could not even be created within {timeout}"));
        }
        Some(StuckOperation::Launch(timeout)) => {
            let timeout = units::time(timeout);
            let created = scan.creation_times.first().copied();
            let created = created.map_or(String::new(), |time| format!("; writing it took {}", units::time(time)));
            return Some(format!(
                "the first launch of a fresh copy of a tiny program did not finish within {timeout}{created}"
            ));
        }
        None => {}
    }
    let kinds = [
        ("first launches", &scan.first_launches),
        ("later launches", &scan.later_launches),
        ("from memory", &scan.memory_launches),
    ];
    let ranges: Vec<String> = kinds
        .into_iter()
        .filter_map(|(kind, times)| {
            let (least, most) = (*times.iter().min()?, *times.iter().max()?);
            Some(format!("{kind} {} to {}", units::time(least), units::time(most)))
        })
        .collect();
    let without = if scan.is_disturbed { ", not counting long waits for a CPU" } else { "" };
    (!ranges.is_empty()).then(|| format!("fresh copies of a tiny program: {}{without}", ranges.join(", ")))
}

fn queue_sentence(scan: &Scan, delay: Nanos) -> Option<String> {
    let files = scan.concurrent_launches.len();
    let last = scan.concurrent_launches.iter().max()?;
    let min_delay = if scan.is_disturbed { MIN_QUEUE_DELAY_WHEN_BUSY } else { MIN_QUEUE_DELAY };
    if delay < min_delay {
        return None;
    }
    let verdict = match scan.queued_delays(delay)? / files as f64 {
        share if share >= MIN_QUEUE_SHARE => {
            "they queue, as behind a single-threaded scanner: parallel launches are serialized"
        }
        share if share <= MAX_NO_QUEUE_SHARE => "they do not queue",
        _ => return None,
    };
    Some(format!("{files} at once took {}: {verdict}", units::time(*last)))
}

fn with_fix(finding: Finding) -> Finding {
    finding
        .fix("leave protection on; launch fewer programs, especially fresh files (build outputs, generated scripts, test programs)")
        .fix("those responsible for this machine's security decide on exclusions: show them these figures")
        .fix("products document narrow exclusions, such as one build tree for one user; /usr, /tmp and home directories are not narrow")
        .fix_cost("excluded files are not scanned when they are executed; they can be scanned at another time")
}

fn hides_processes(machine: &Machine) -> bool {
    let mounts = machine.mounts();
    !machine.is_privileged()
        && containing_mount(&mounts, Path::new("/proc")).is_some_and(|mount| {
            mount
                .options
                .split(',')
                .any(|option| matches!(option.strip_prefix("hidepid="), Some("2" | "4" | "invisible" | "ptraceable")))
        })
}

fn product(name: &str) -> Option<&'static str> {
    let known = KNOWN_DAEMONS.iter().find(|(known, _)| name == *known);
    known.map(|(_, product)| *product)
}

struct PermissionMarks<'p> {
    holders: Vec<&'p Process>,
    /// What could not be searched, and why.
    incomplete: Option<String>,
}

impl PermissionMarks<'_> {
    fn find<'p>(machine: &Machine, processes: &'p [Process]) -> PermissionMarks<'p> {
        let until = Instant::now() + TIMEOUT;
        let mut marks = PermissionMarks { holders: Vec::new(), incomplete: None };
        let (mut hidden, mut late) = (0, 0);
        for process in processes {
            if Instant::now() >= until {
                late += 1;
            } else if is_hidden(machine, process) {
                hidden += 1;
            } else if holds_permission_mark(machine, process) {
                marks.holders.push(process);
            }
        }
        if late > 0 {
            let count = units::counted(late, "process", "processes");
            let limit = units::time(Nanos(TIMEOUT.as_nanos() as u64));
            marks.incomplete = Some(format!("the descriptors of {count}: not reached within {limit}"));
        } else if hidden > 0 {
            let count = units::counted(hidden, "other process", "other processes");
            marks.incomplete = Some(format!("fanotify marks of {count}: only root can read their descriptors"));
        }
        marks
    }

    fn names(&self) -> String {
        let mut names: Vec<&str> = self.holders.iter().map(|process| process.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.join(", ")
    }
}

/// Returns whether the doctor may not read the descriptors of a process. A process that has ended
/// is not hidden.
fn is_hidden(machine: &Machine, process: &Process) -> bool {
    let descriptors = fs::read_dir(machine.path(process.file("fd")));
    descriptors.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn holds_permission_mark(machine: &Machine, process: &Process) -> bool {
    let descriptors = fs::read_dir(machine.path(process.file("fd"))).into_iter().flatten().flatten();
    descriptors
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == "anon_inode:[fanotify]"))
        .filter_map(|entry| machine.text(process.file(&format!("fdinfo/{}", entry.file_name().to_string_lossy()))))
        .any(|marks| marks.lines().filter_map(mask).any(|mask| mask & PERMISSION_EVENTS != 0))
}

/// Returns the mask of a line such as `fanotify mnt_id:12 mflags:40 mask:3b ignored_mask:40000000`.
fn mask(line: &str) -> Option<u64> {
    let word = line.strip_prefix("fanotify ")?.split(' ').find_map(|word| word.strip_prefix("mask:"))?;
    u64::from_str_radix(word, 16).ok()
}
