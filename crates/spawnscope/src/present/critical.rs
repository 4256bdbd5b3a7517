//! The report's sections on the critical path and on waits, and the names of the parts of the wall.

use super::page::{PLAIN, Page, QUIET, plain, styled};
use super::{text, units, words};
use crate::analyze::explain::report::{Report, Spent};
use crate::analyze::waits::attribution::{AttributedObject, AttributedWaits, Parts, WaitTarget, WaitTargets};
use crate::event::{Nanos, ObjectKind};

/// Parts below this share of the wall are not printed.
const MIN_SHARE: f64 = 0.001;

/// Describes a part of the wall in a few words.
pub(super) fn description(what: &Spent) -> String {
    text::escape(what.description().as_bytes())
}

pub(super) fn print_critical_path(page: &mut Page, report: &Report) {
    if report.where_the_wall_went.is_empty() {
        return;
    }
    page.heading("Where the wall time goes: the critical path");
    print_parts(page, &report.where_the_wall_went, report.wall);
    page.sentence(2, QUIET, "each moment counts once, for the activity on the critical path");
    if let Some(error) = report.replay_error {
        let error =
            format!("replay error: {} (the simulated against the recorded wall time)", units::signed_percent(error));
        page.sentence(2, QUIET, &error);
    }
    if report.is_reconstructed {
        page.sentence(2, QUIET, &reconstruction_note(&report.info.collector));
    }
}

/// Returns the note that the causes of waits were not recorded.
pub(super) fn reconstruction_note(collector: &str) -> String {
    format!(
        "{} does not record what ends a wait: the path is reconstructed from the ends of children, and waits with an unknown cause widen the \
         intervals",
        text::escape(collector.as_bytes())
    )
}

/// Prints a line for each part of the wall whose share is at least `MIN_SHARE`.
pub(super) fn print_parts(page: &mut Page, parts: &[(Spent, Nanos)], wall: Nanos) {
    for (what, time) in parts {
        if (time.0 as f64) < MIN_SHARE * wall.0 as f64 {
            continue;
        }
        let figure = text::pad_left(&units::time(*time), 10);
        let share = text::pad_left(&units::percent(*time, wall), 8);
        page.hanging([plain(format!("  {figure}{share}   "))], PLAIN, &description(what));
    }
}

/// Waits below this share of the wall, or below `MIN_TIME`, are not printed.
const MIN_WAIT_SHARE: f64 = 0.01;
const MIN_TIME: Nanos = Nanos(1_000_000);
const MAX_ENTRIES: usize = 6;
const MAX_NAMED: usize = 3;
/// Maximum width of a name or path, in columns.
const NAME_WIDTH: usize = 40;

/// The name of the part of a wait that is not attributed to a phase.
const UNATTRIBUTED: &str = "unattributed";

/// A no-break space: lines are not wrapped between a figure and its unit.
pub(super) const NO_BREAK_SPACE: char = '\u{a0}';
/// Maximum width of a name that stays on one line with its count, in columns.
const TIED_NAME_WIDTH: usize = 16;

pub(super) fn print_waits(page: &mut Page, report: &Report) {
    let shown = report.waits.iter().filter(|waits| {
        let total = waits.parts.total();
        total >= MIN_TIME && total.0 as f64 >= MIN_WAIT_SHARE * report.wall.0 as f64
    });
    let shown: Vec<&AttributedWaits> = shown.collect();
    if shown.is_empty() {
        return;
    }
    page.heading("What programs waited for");
    for waits in &shown[..shown.len().min(MAX_ENTRIES)] {
        // Continuation lines are indented further, so that the beginning of each list entry is
        // visible.
        let lines = text::wrap(&waits_sentence(waits), page.width().saturating_sub(4));
        for (number, line) in lines.into_iter().enumerate() {
            let indent = if number == 0 { "  " } else { "    " };
            page.line([plain(indent), styled(PLAIN, line.replace(NO_BREAK_SPACE, " "))]);
        }
    }
    if let Some(more) = shown.len().checked_sub(MAX_ENTRIES).filter(|more| *more > 0) {
        page.sentence(2, QUIET, &format!("… {} more, in `report --json`", units::count(more as u64)));
    }
    if shown.iter().take(MAX_ENTRIES).any(|waits| !list_parts(&waits.parts).is_empty()) {
        page.sentence(2, QUIET, "after the colon: what the awaited programs did meanwhile");
    }
    page.sentence(2, QUIET, "waits overlap: they do not add up to the wall time");
}

/// Formats waits, for example `emacs waited 3.40 s in read on a pipe from 25 x git: 2.10 s run (800
/// ms of it blocked), 1.00 s start-up, 300 ms queued for a CPU`. A child's own waits are part of
/// its run. Late reaping is listed separately within the launch tax, because the waiting program
/// can fix it.
pub(super) fn waits_sentence(waits: &AttributedWaits) -> String {
    let command = short_name(&waits.command);
    let total = time(waits.parts.total());
    let call = waits.syscall.map(|call| format!(" in {}", words::syscall_name(call)));
    let object = waits.object.as_ref().and_then(describe_object).unwrap_or_default();
    // Data through a pipe comes *from* a process; without an object, the wait is *for* its end.
    let word = if object.is_empty() { "for" } else { "from" };
    let targets = list_targets(&waits.targets);
    format!("{command} waited {total}{}{object} {word} {targets}{}", call.unwrap_or_default(), list_parts(&waits.parts))
}

fn describe_object(object: &AttributedObject) -> Option<String> {
    if let Some(path) = object.path.as_deref() {
        return Some(format!(" on {}", short_name(path)));
    }
    Some(match object.kind {
        ObjectKind::Pipe => " on a pipe".to_owned(),
        ObjectKind::Fifo => " on a fifo".to_owned(),
        ObjectKind::UnixSocket | ObjectKind::Socket => " on a socket".to_owned(),
        ObjectKind::CharacterDevice => " on a device".to_owned(),
        ObjectKind::BlockDevice => " on a disk".to_owned(),
        ObjectKind::File => " on a file".to_owned(),
        ObjectKind::Directory => " on a directory".to_owned(),
        ObjectKind::Eventfd => " on an eventfd".to_owned(),
        ObjectKind::Signalfd => " on a signalfd".to_owned(),
        ObjectKind::Timerfd => " on a timerfd".to_owned(),
        ObjectKind::Pidfd => " on a pidfd".to_owned(),
        // The name of the system call already shows this, or there is nothing to add.
        ObjectKind::Epoll | ObjectKind::Anonymous | ObjectKind::Permission => return None,
    })
}

fn list_targets(all: &[WaitTargets]) -> String {
    let named = &all[..all.len().min(MAX_NAMED)];
    let mut names: Vec<String> = named.iter().map(target_name).collect();
    let others: u64 = all[named.len()..].iter().map(|each| each.count).sum();
    if others > 0 {
        names.push(units::counted(others, "other", "others"));
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn target_name(each: &WaitTargets) -> String {
    match &each.target {
        WaitTarget::Launches { command, through } => {
            let through = through.as_ref().map(|through| format!(" (woken by {})", short_name(through)));
            let count = units::count(each.count);
            let name = short_name(command);
            let space = if text::width(&name) > TIED_NAME_WIDTH { ' ' } else { NO_BREAK_SPACE };
            format!("{count}{NO_BREAK_SPACE}x{space}{name}{}", through.unwrap_or_default())
        }
        WaitTarget::Process(name) => describe_process("process", name.as_deref()),
        WaitTarget::Scanner(name) => describe_process("scanner", name.as_deref()),
    }
}

fn describe_process(what: &str, name: Option<&[u8]>) -> String {
    match name {
        Some(name) => format!("the {what} {}", short_name(name)),
        None => format!("a {what} of unknown name"),
    }
}

/// Lists the parts of waits, longest first. Returns nothing if all of the time is unattributed.
/// Parts below a thousandth are not shown.
fn list_parts(parts: &Parts) -> String {
    let tax = Nanos(parts.tax.0 + parts.reap.0);
    let mut named = [
        (parts.run, "run", (parts.run_waiting, "blocked")),
        (tax, "start-up", (parts.reap, "late reaping")),
        (parts.queue, "queued for a CPU", (Nanos(0), "")),
        (parts.other, UNATTRIBUTED, (Nanos(0), "")),
    ];
    named.sort_by_key(|(time, ..)| std::cmp::Reverse(*time));
    let min_shown = parts.total().0 / 1000;
    let visible: Vec<_> = named.iter().filter(|(time, ..)| time.0 > min_shown).collect();
    if let [(_, UNATTRIBUTED, _)] = visible[..] {
        return String::new();
    }
    let each = visible.iter().map(|(span, name, (part, what))| {
        let part = (part.0 > min_shown).then(|| format!(" ({} of it {what})", time(*part)));
        format!("{} {name}{}", time(*span), part.unwrap_or_default())
    });
    format!(": {}", each.collect::<Vec<_>>().join(", "))
}

/// Formats a time, with a no-break space before its unit.
fn time(span: Nanos) -> String {
    units::time(span).replace(' ', &NO_BREAK_SPACE.to_string())
}

fn short_name(bytes: &[u8]) -> String {
    text::truncate(&text::escape(bytes), NAME_WIDTH)
}
