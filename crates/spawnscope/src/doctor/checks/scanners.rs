//! On-access scanners: programs that hold up an open or an exec until they have looked at the file. By what the kernel shows of
//! them (fanotify permission marks), by name, and by their effect: the first launch of a fresh file against the second.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Check;
use crate::doctor::measure::Scan;
use crate::doctor::mounts;
use crate::doctor::processes::Process;
use crate::doctor::{Effect, Examination, Finding, Findings, Machine};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "scanners",
    looks_at: "fanotify permission marks, known daemons, first launches of fresh files",
    run,
};

/// Names of processes (their first 15 bytes), and the products that they are of.
const KNOWN: [(&str, &str); 18] = [
    ("fapolicyd", "fapolicyd"),
    ("clamonacc", "ClamAV on-access"),
    ("wdavdaemon", "Microsoft Defender"),
    ("mdatp", "Microsoft Defender"),
    ("falcon-sensor", "CrowdStrike Falcon"),
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
/// FAN_OPEN_PERM, FAN_ACCESS_PERM, FAN_OPEN_EXEC_PERM, FAN_PRE_ACCESS.
const PERMISSION_EVENTS: u64 = 0x17_0000;
/// How long descriptors are looked through: a machine may have hundreds of thousands.
const PATIENCE: Duration = Duration::from_millis(300);
/// What a launch must take longer to be called scanned by somebody unseen: more than a fresh file takes to be read.
const LEAST_OF_UNKNOWN: Nanos = Nanos(400_000);
/// The same where somebody holds marks.
const LEAST_OF_KNOWN: Nanos = Nanos(50_000);
/// What one must take longer to tell a queue from the launches themselves, which share the processors.
const LEAST_OF_QUEUE: Nanos = Nanos(2_000_000);
/// Files that wait one behind the other, of those launched at once, that make a queue.
const QUEUE: f64 = 3.0;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let processes = &examination.processes;
    let marks = Marks::find(examination.machine, processes);
    unseen(examination, &marks, findings);
    let by_name: Vec<&Process> = processes
        .iter()
        .filter(|process| product(&process.name).is_some())
        .collect();
    let scan = examination.measured.scan.as_ref();
    let least = if marks.holders.is_empty() {
        LEAST_OF_UNKNOWN
    } else {
        LEAST_OF_KNOWN
    };
    let delay = scan.and_then(|scan| Delay::of(scan, least));
    let mut names: Vec<String> = marks.holders.iter().map(|process| process.name.clone()).collect();
    names.sort();
    names.dedup();
    let is_stuck = scan.is_some_and(|scan| scan.is_stuck);
    if names.is_empty() && by_name.is_empty() && delay.is_none() && !is_stuck {
        return;
    }
    // A daemon that is only there by name, and that holds nothing up, is no scanner of what is launched here.
    let matters = !marks.holders.is_empty() || delay.is_some() || is_stuck;
    let mut finding = Finding::problem_if(matters, title(&names.join(", "), delay.as_ref(), is_stuck))
        .effect(delay.map(|delay| Effect::measured(delay.span, delay.of)));
    for process in &marks.holders {
        finding = finding.evidence(holds(process));
    }
    if marks.holders.is_empty() {
        for process in by_name {
            finding = finding.evidence(runs(process));
        }
    }
    if let Some(scan) = scan {
        finding = finding
            .evidence(times(scan))
            .evidence_if(delay.and_then(|delay| queue(scan, delay.span)));
    }
    findings.add(with_fix(finding));
}

fn unseen(examination: &Examination<'_>, marks: &Marks<'_>, findings: &mut Findings) {
    if let Some(why) = &marks.incomplete {
        findings.unseen(why.as_str());
    }
    if hides_processes(examination.machine) {
        findings.unseen("processes of other users: /proc is mounted so that it does not show them");
    }
    if examination.surroundings.container.is_some() {
        findings.unseen("scanners of the host, but for what first launches take: this is a container");
    }
    if examination.measured.scan.is_none() {
        findings.unseen("first launches of fresh files could not be timed");
    }
}

fn holds(process: &Process) -> String {
    let Process { name, pid, .. } = process;
    let of = product(name).filter(|product| product != name);
    let of = of.map_or(String::new(), |product| format!(", {product}"));
    format!("{name} (process {pid}{of}) holds fanotify marks by which opens or execs wait for its answer")
}

fn runs(process: &Process) -> String {
    let Process { name, pid, .. } = process;
    let product = product(name).unwrap_or_default();
    format!("{name} (process {pid}) runs here, which is of {product}")
}

/// How long launches are held up, and which.
#[derive(Clone, Copy)]
struct Delay {
    span: Nanos,
    of: &'static str,
}

impl Delay {
    fn of(scan: &Scan, least: Nanos) -> Option<Delay> {
        let first = scan.first_delay(least).map(|span| Delay {
            span,
            of: "the first launch of each file",
        });
        // A scanner that remembers no verdict is asked each time.
        first.or_else(|| {
            scan.later_delay(least).map(|span| Delay {
                span,
                of: "each launch",
            })
        })
    }
}

/// Only who is seen to hold marks is blamed.
fn title(holders: &str, delay: Option<&Delay>, is_stuck: bool) -> String {
    match delay {
        Some(Delay { span, of }) if holders.is_empty() => {
            format!("{of} takes {} longer: something scans it", units::time(*span))
        }
        Some(Delay { span, of }) => format!("{holders} holds up {of} for {}", units::time(*span)),
        None if !holders.is_empty() => format!("{holders} scans files when they are opened or executed"),
        None if is_stuck => "the first launch of a file does not come to its end: something holds it up".to_owned(),
        None => "a product runs here that can hold up launches; it was not seen to".to_owned(),
    }
}

fn times(scan: &Scan) -> String {
    if scan.is_stuck {
        let patience = Scan::PATIENCE.as_millis();
        return format!("the first launch of a fresh copy of a tiny program did not end within {patience} ms");
    }
    let range = |times: &[Nanos]| {
        let (least, most) = (times.iter().min().copied(), times.iter().max().copied());
        format!("{} to {}", units::time(least), units::time(most))
    };
    format!(
        "fresh copies of a tiny program: first launches {}, second ones {}, from memory {}",
        range(&scan.first),
        range(&scan.later),
        range(&scan.unscanned)
    )
}

fn queue(scan: &Scan, delay: Nanos) -> Option<String> {
    let files = scan.at_once.len();
    let last = scan.at_once.iter().max()?;
    if delay < LEAST_OF_QUEUE {
        return None;
    }
    let queue = scan.queue(delay)?;
    let verdict = if queue >= QUEUE.min(files as f64 * 0.7) {
        "they queue, as behind a scanner with one thread: launches that are parallel are not"
    } else {
        "they do not queue behind each other"
    };
    Some(format!("{files} at once took {}: {verdict}", units::time(*last)))
}

fn with_fix(finding: Finding) -> Finding {
    finding
        .fix("leave protection on; launch less, above all fewer fresh files (build outputs, generated scripts, test programs)")
        .fix("whether anything is excluded is for the owner of this machine's security to decide: show them these figures")
        .fix("products document narrow exclusions, such as one build tree for the user who builds; /usr, /tmp and homes are not narrow")
        .fix_cost("what is excluded is not looked at when it is executed; it can be scanned at another time")
}

fn hides_processes(machine: &Machine) -> bool {
    let mounts = mounts::all(machine);
    let hides = |option: &str| {
        matches!(
            option.strip_prefix("hidepid="),
            Some("2" | "4" | "invisible" | "ptraceable")
        )
    };
    !machine.is_privileged()
        && mounts::of(&mounts, Path::new("/proc")).is_some_and(|mount| mount.options.split(',').any(hides))
}

fn product(name: &str) -> Option<&'static str> {
    let known = KNOWN.iter().find(|(known, _)| name == *known);
    known.map(|(_, product)| *product)
}

/// Who holds permission marks.
struct Marks<'p> {
    holders: Vec<&'p Process>,
    incomplete: Option<String>,
}

impl Marks<'_> {
    fn find<'p>(machine: &Machine, processes: &'p [Process]) -> Marks<'p> {
        let until = Instant::now() + PATIENCE;
        let mut marks = Marks {
            holders: Vec::new(),
            incomplete: None,
        };
        let (mut hidden, mut late) = (0, 0);
        for process in processes {
            match () {
                () if Instant::now() >= until => late += 1,
                () if fs::read_dir(machine.path(process.file("fd"))).is_err() => hidden += 1,
                () if holds_permission_mark(machine, process) => marks.holders.push(process),
                () => {}
            }
        }
        if late > 0 {
            let count = units::counted(late, "process", "processes");
            marks.incomplete = Some(format!("the descriptors of {count}: there are too many"));
        } else if hidden > 0 {
            let count = units::counted(hidden, "other process", "other processes");
            marks.incomplete = Some(format!(
                "who holds fanotify marks among {count}: only root sees their descriptors"
            ));
        }
        marks
    }
}

fn holds_permission_mark(machine: &Machine, process: &Process) -> bool {
    let descriptors = fs::read_dir(machine.path(process.file("fd")))
        .into_iter()
        .flatten()
        .flatten();
    descriptors
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str() == "anon_inode:[fanotify]"))
        .filter_map(|entry| machine.text(process.file(&format!("fdinfo/{}", entry.file_name().to_string_lossy()))))
        .any(|marks| marks.lines().filter_map(mask).any(|mask| mask & PERMISSION_EVENTS != 0))
}

/// `fanotify mnt_id:12 mflags:40 mask:3b ignored_mask:40000000`
fn mask(line: &str) -> Option<u64> {
    let word = line
        .strip_prefix("fanotify ")?
        .split(' ')
        .find_map(|word| word.strip_prefix("mask:"))?;
    u64::from_str_radix(word, 16).ok()
}
