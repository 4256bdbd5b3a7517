//! The file systems of the working directory, of the directory for temporary files, and of the home
//! directory: whether they answer, whether files can be created, and whether programs on them start
//! slowly.

use std::io;
use std::path::{Path, PathBuf};

use crate::machine::{Mount, containing_mount};
use crate::measure::{DIRECTORY_TIMEOUT, Scan, StuckOperation, median};
use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// A delay shorter than this is not reported.
const MIN_DELAY: Nanos = Nanos(50_000);

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let mounts = machine.mounts();
    if mounts.is_empty() {
        findings.add_not_examined("the mount table");
        return;
    }
    let home = machine.variable("HOME").map(PathBuf::from);
    let directories = [
        (WORKING, Some(machine.working_directory().to_owned())),
        (TEMPORARY, Some(machine.temporary_directory())),
        (HOME, home),
    ];
    for (what, directory) in directories {
        let Some(directory) = directory.filter(|directory| directory.is_absolute()) else { continue };
        if examination.measured.untried.contains(&directory) {
            findings.add_not_examined(format!("{what}, {}: not tried, for lack of time", directory.display()));
            continue;
        }
        if machine.is_left_out(&directory) {
            findings.add(unresponsive_finding(what, &directory, containing_mount(&mounts, &directory)));
            continue;
        }
        let real = machine.canonical(&directory).unwrap_or_else(|| directory.clone());
        let mount = containing_mount(&mounts, &real);
        // A remote file system may take long to report its free space.
        let is_local = mount.is_none_or(|mount| mount.remote_description().is_none());
        if let Some(error) = machine.check_writable(&directory).err().filter(|_| what == TEMPORARY && is_local) {
            findings.add(unwritable_finding(&directory, machine.variable("TMPDIR").is_some(), &error));
            continue;
        }
        if let Some(mount) = mount.filter(|_| what != HOME) {
            let remote_scan = examination.measured.remote_scan.as_ref().filter(|_| what == TEMPORARY);
            check_mount(what, &directory.display().to_string(), mount, remote_scan, findings);
        }
    }
}

const WORKING: &str = "the working directory";
const TEMPORARY: &str = "the directory for temporary files";
const HOME: &str = "the home directory";

fn unresponsive_finding(what: &str, directory: &Path, mount: Option<&Mount>) -> Finding {
    let on = mount.map_or(String::new(), |mount| format!(", apparently on {} ({})", mount.point.display(), mount.kind));
    let waited = units::time(Nanos(DIRECTORY_TIMEOUT.as_nanos() as u64));
    Finding::problem(format!("{what} does not answer"))
        .evidence(format!("{}{on}: no answer within {waited}", directory.display()))
        .evidence("other programs that look for a file there hang too, some even unkillably; the doctor left it out of all checks")
        .fix("check whether the machine or the process that serves that file system is alive; if not, `umount -l` detaches it")
        .fix("launch from another directory until then")
        .fix_cost("programs that already hang in a detached file system keep hanging")
}

fn unwritable_finding(directory: &Path, is_set: bool, error: &io::Error) -> Finding {
    let variable = if is_set { "TMPDIR=" } else { "" };
    let finding = Finding::problem("temporary files cannot be created")
        .evidence(format!("{variable}{}: {}", directory.display(), error_text(error)))
        .evidence("here-documents, compilers, sort, mktemp and installers fail, or use another directory");
    let finding = match error.kind() {
        io::ErrorKind::StorageFull => finding.fix("free some space: `df` and `df -i` show what is full"),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if is_set => {
            finding.fix("unset TMPDIR, or create the directory that it names")
        }
        _ => finding.fix("set TMPDIR to a directory of your own in which files can be created"),
    };
    finding.fix_cost("none")
}

/// Returns the reason in words, without the error number that `io::Error` appends.
fn error_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "no space left".to_owned(),
        io::ErrorKind::NotFound => "no such directory".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns how much longer launches of fresh files take there, if they do, and the evidence.
fn launch_delay(scan: &Scan) -> (Option<Effect>, String) {
    let each = scan.later_delay(MIN_DELAY);
    let effect = each.map(|span| Effect::measured(span, "each launch of a program there"));
    let first = scan.first_delay(MIN_DELAY);
    let effect = effect.or(first.map(|span| Effect::measured(span, "the first launch of a program there")));
    let [first, later, memory] = [&scan.first_launches, &scan.later_launches, &scan.memory_launches]
        .map(|times| units::time(median(times.clone())));
    let evidence = match scan.stuck {
        Some(StuckOperation::Creation(time)) => format!("a file could not be created within {}", units::time(time)),
        Some(StuckOperation::Launch(time)) => {
            format!("the first launch of a tiny program there did not finish within {}", units::time(time))
        }
        None => format!("a tiny program there: first launch {first}, later launches {later}, from memory {memory}"),
    };
    (effect, evidence)
}

fn check_mount(what: &str, directory: &str, mount: &Mount, remote_scan: Option<&Scan>, findings: &mut Findings) {
    let location = format!("{directory} is on {} ({})", mount.point.display(), mount.kind);
    if let Some(remote) = mount.remote_description() {
        let (effect, timed) = remote_scan.map(launch_delay).unzip();
        findings.add(
            Finding::problem(format!("{what} is on {remote}"))
                .evidence(&location)
                .evidence("each exec, open and look-up there may have to wait for another machine or process")
                .evidence_if(timed)
                .effect(effect.flatten())
                .fix("build and run on a local disk, and copy the results")
                .fix_cost("the copies, and space for them"),
        );
    }
}
