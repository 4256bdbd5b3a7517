//! One line of `perf script`, of `trace-cmd report` or of ftrace's file `trace`: the thread that
//! ran when the event happened, the time, and the event. Names of threads may contain anything, so
//! a line is divided at its time, and the number of the thread is what stands before the CPU.

use spawnscope_data::event::LeftCpu;

use crate::text::{after, find, fraction, integer, number, skip_spaces, split_at_any};

/// Limit of the times of clocks: a recording cannot contain later ones.
const MAX_SECONDS: u64 = 1 << 32;

/// A line, after which the state of a thread changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'l> {
    /// Nanoseconds of the log's clock.
    pub at: u64,
    /// The running thread: zero for an idle CPU.
    pub tid: i32,
    /// Its process, if the line says so.
    pub tgid: Option<i32>,
    pub name: &'l [u8],
    /// Whether the event happened in an interrupt.
    pub in_interrupt: bool,
    pub event: Scheduling<'l>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling<'l> {
    Fork {
        parent: i32,
        child: i32,
        /// The process of the child.
        tgid: Option<i32>,
    },
    Exec {
        tid: i32,
        /// The number that the thread had before.
        old_tid: i32,
        path: &'l [u8],
    },
    Exit {
        tid: i32,
        /// Whether no thread of the process is left; old kernels do not say so.
        is_last: Option<bool>,
    },
    Switch {
        previous: i32,
        reason: LeftCpu,
        next: i32,
        next_name: &'l [u8],
    },
    Waking {
        tid: i32,
    },
    /// The name of a thread.
    Named {
        tid: i32,
        name: &'l [u8],
        /// Whether it has the name because it executed a program.
        by_exec: bool,
    },
    /// Another event, which shows that the thread ran.
    Other,
}

/// Returns how many events were lost, if the line says so.
pub fn lost(line: &[u8]) -> Option<u64> {
    let line = skip_spaces(line);
    if let Some(count) = after(line, b"PERF_RECORD_LOST lost ") {
        return Some(number(count)?.0);
    }
    let count = after(line.strip_prefix(b"CPU:")?, b"[")?;
    let count = count.strip_prefix(b"LOST ").unwrap_or(count);
    let (count, what) = number(count)?;
    (what.starts_with(b" EVENTS")).then_some(count)
}

/// Whether a line is a comment or a heading of the tools.
pub fn is_heading(line: &[u8]) -> bool {
    let line = skip_spaces(line);
    line.is_empty()
        || line.starts_with(b"#")
        || line.starts_with(b"cpus=")
        || line.starts_with(b"version = ")
        || line.starts_with(b"CPU ") && line.ends_with(b" is empty")
}

/// Parses a line. `None` if none of these tools writes such a line.
pub fn parse(line: &[u8]) -> Option<Line<'_>> {
    let (front, at, rest) = divide_at_time(line)?;
    let (front, flags) = split_cpu(front);
    let (front, tgid) = split_process(front);
    let digits = front.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (name, tid) = front.split_at(front.len() - digits);
    let tid = tid_of(tid)?;
    // perf writes the process before the thread if both are asked for: `name 12/13`.
    let (name, own_tgid) = match name.strip_suffix(b"/") {
        Some(name) => {
            let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            let (name, tgid) = name.split_at(name.len() - digits);
            (name, Some(tid_of(tgid)?))
        }
        None => (name, None),
    };
    let name = name.strip_suffix(b"-").unwrap_or(name).trim_ascii();
    let in_interrupt = matches!(flags.get(2), Some(b'h' | b'H' | b's' | b'z' | b'Z'));
    let event = event(rest)?;
    Some(Line { at, tid, tgid: tgid.or(own_tgid), name, in_interrupt, event })
}

/// Returns what stands before the time, the time in nanoseconds, and what follows it.
fn divide_at_time(line: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let mut from = 0;
    loop {
        let colon = from + find(&line[from..], b":")?;
        let is_time = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let start = line[..colon].iter().rposition(|byte| !is_time(byte))? + 1;
        if line[start - 1] == b' '
            && let Some((seconds, after)) = number(&line[start..colon])
            && after.starts_with(b".")
            && let Some((fraction, b"")) = fraction(after)
        {
            let at = (seconds < MAX_SECONDS).then(|| seconds * 1_000_000_000 + fraction)?;
            return Some((line[..start].trim_ascii(), at, skip_spaces(&line[colon + 1..])));
        }
        from = colon + 1;
    }
}

/// Removes the CPU, `[001]`, and the flags that follow it in ftrace's lines. perf writes no CPU if
/// it did not record it.
fn split_cpu(front: &[u8]) -> (&[u8], &[u8]) {
    let cpu = (|| {
        let open = front.iter().rposition(|byte| *byte == b'[')?;
        let (_, after) = number(&front[open + 1..])?;
        Some((front[..open].trim_ascii_end(), skip_spaces(after.strip_prefix(b"]")?)))
    })();
    cpu.unwrap_or((front, b""))
}

/// Removes the process that ftrace writes with its option `record-tgid`: `(   12)`, or dashes.
fn split_process(front: &[u8]) -> (&[u8], Option<i32>) {
    let process = (|| {
        let open = front.strip_suffix(b")")?.iter().rposition(|byte| *byte == b'(')?;
        let tgid = front[open + 1..front.len() - 1].trim_ascii();
        let is_known = !tgid.starts_with(b"-");
        Some((front[..open].trim_ascii_end(), if is_known { Some(tid_of(tgid)?) } else { None }))
    })();
    process.unwrap_or((front, None))
}

fn tid_of(text: &[u8]) -> Option<i32> {
    number(text).filter(|(_, rest)| rest.is_empty()).and_then(|(tid, _)| i32::try_from(tid).ok())
}

fn event(rest: &[u8]) -> Option<Scheduling<'_>> {
    if let Some(record) = rest.strip_prefix(b"PERF_RECORD_") {
        return record_of_perf(record);
    }
    let (name, fields) = split_at_any(rest, b" ")?;
    let name = name.strip_suffix(b":")?;
    let fields = skip_spaces(fields);
    Some(match name.strip_prefix(b"sched:").unwrap_or(name) {
        b"sched_process_fork" => {
            let (parent, rest) = field(fields, b" pid=")?;
            let (child, _) = field(rest, b" child_pid=")?;
            Scheduling::Fork { parent, child, tgid: None }
        }
        b"sched_process_exec" => {
            let path = fields.strip_prefix(b"filename=")?;
            let at = last(path, b" pid=")?;
            let (tid, rest) = field(&path[at..], b" pid=")?;
            let (old_tid, _) = field(rest, b" old_pid=")?;
            Scheduling::Exec { tid, old_tid, path: &path[..at] }
        }
        b"sched_process_exit" => {
            let (tid, rest) = field(fields, b" pid=")?;
            let dead = after(rest, b"group_dead=");
            Scheduling::Exit { tid, is_last: dead.map(|dead| dead.starts_with(b"true") || dead.starts_with(b"1")) }
        }
        b"sched_switch" => switch(fields)?,
        b"sched_waking" | b"sched_wakeup" | b"sched_wakeup_new" => Scheduling::Waking { tid: waked(fields)? },
        _ => Scheduling::Other,
    })
}

/// Parses what `perf script --show-task-events` writes.
fn record_of_perf(record: &[u8]) -> Option<Scheduling<'_>> {
    // The process and the thread.
    let pair = |text: &[u8]| {
        let (process, rest) = number(text)?;
        let (thread, _) = number(rest.get(1..)?)?;
        Some((i32::try_from(process).ok()?, i32::try_from(thread).ok()?))
    };
    if let Some(pairs) = record.strip_prefix(b"FORK(") {
        let (tgid, child) = pair(pairs)?;
        let (_, parent) = pair(after(pairs, b"):(")?)?;
        return Some(Scheduling::Fork { parent, child, tgid: Some(tgid) });
    }
    if let Some(pairs) = record.strip_prefix(b"EXIT(") {
        return Some(Scheduling::Exit { tid: pair(pairs)?.1, is_last: None });
    }
    let Some(named) = record.strip_prefix(b"COMM") else {
        return Some(Scheduling::Other);
    };
    let executed = named.strip_prefix(b" exec");
    let name = executed.unwrap_or(named).strip_prefix(b": ")?;
    let at = last(name, b":")?;
    let ((_, tid), name) = (pair(&name[at + 1..])?, &name[..at]);
    Some(Scheduling::Named { tid, name, by_exec: executed.is_some() })
}

/// Parses `prev_comm=a prev_pid=1 ... ==> next_comm=b next_pid=2 ...`, or `a:1 [120] S ==> b:2
/// [120]`.
fn switch(fields: &[u8]) -> Option<Scheduling<'_>> {
    let arrow = last(fields, b" ==> ")?;
    let (before, next) = (&fields[..arrow], &fields[arrow + 5..]);
    let state = before.rsplit(|byte| matches!(byte, b' ' | b'=')).next()?;
    let reason = match state.first()? {
        b'S' | b'I' => LeftCpu::Interruptible,
        b'R' => LeftCpu::Preempted,
        b'T' | b't' => LeftCpu::Stopped,
        b'Z' | b'X' | b'x' => LeftCpu::Ended,
        _ => LeftCpu::Uninterruptible,
    };
    if let Some(named) = next.strip_prefix(b"next_comm=") {
        let at = last(named, b" next_pid=")?;
        let (next, _) = field(&named[at..], b" next_pid=")?;
        let previous = &before[last(before, b" prev_pid=")?..];
        let (previous, _) = field(previous, b" prev_pid=")?;
        return Some(Scheduling::Switch { previous, reason, next, next_name: &named[..at] });
    }
    let (_, previous) = named(before)?;
    let (next_name, next) = named(next)?;
    Some(Scheduling::Switch { previous, reason, next, next_name })
}

fn waked(fields: &[u8]) -> Option<i32> {
    match last(fields, b" pid=") {
        Some(at) => Some(field(&fields[at..], b" pid=")?.0),
        None => Some(named(fields)?.1),
    }
}

/// Parses a thread as in `name:12 [120]`.
fn named(text: &[u8]) -> Option<(&[u8], i32)> {
    let text = text[..last(text, b" [")?].trim_ascii_end();
    let colon = text.iter().rposition(|byte| *byte == b':')?;
    Some((&text[..colon], tid_of(&text[colon + 1..])?))
}

/// Returns the number after a key, and what follows it.
fn field<'l>(text: &'l [u8], key: &[u8]) -> Option<(i32, &'l [u8])> {
    let rest = after(text, key)?;
    let end = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    Some((i32::try_from(integer(&rest[..end])?).ok()?, &rest[end..]))
}

fn last(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).rposition(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_its_form() {
        let switch =
            Scheduling::Switch { previous: 5, reason: LeftCpu::Interruptible, next: 0, next_name: b"swapper/1" };
        let of_perf =
            "prev_comm=a b prev_pid=5 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
        for (text, tgid) in [
            (format!("   a b     5 [001] 81533.538871:       sched:sched_switch: {of_perf}"), None),
            (format!("   a b     4/5 [001] 81533.538871000:  sched:sched_switch: {of_perf}"), Some(4)),
            (format!("   a b     5 81533.538871:       sched:sched_switch: {of_perf}"), None),
            (format!("   a b-5     [001] d..2. 81533.538871: sched_switch: {of_perf}"), None),
            (format!("   a b-5     (    4) [001] d..2. 81533.538871: sched_switch: {of_perf}"), Some(4)),
            (format!("   a b-5     (-------) [001] d..2. 81533.538871: sched_switch: {of_perf}"), None),
            ("  a b-5 [001] 81533.538871: sched_switch:    a b:5 [120] S ==> swapper/1:0 [120]".to_owned(), None),
        ] {
            let line = Line { at: 81_533_538_871_000, tid: 5, tgid, name: b"a b", in_interrupt: false, event: switch };
            assert_eq!(parse(text.as_bytes()), Some(line), "{text}");
        }
    }

    #[test]
    fn each_event_is_parsed() {
        for (text, expected) in [
            (
                "sched_process_fork: comm=a pid=1 pid=5 child_comm=a child_pid=6",
                Scheduling::Fork { parent: 1, child: 6, tgid: None },
            ),
            ("PERF_RECORD_FORK(5:6):(5:5)", Scheduling::Fork { parent: 5, child: 6, tgid: Some(5) }),
            (
                "sched:sched_process_exec: filename=/a pid=1/b pid=6 old_pid=7",
                Scheduling::Exec { tid: 6, old_tid: 7, path: b"/a pid=1/b" },
            ),
            ("PERF_RECORD_COMM exec: a:b:6/6", Scheduling::Named { tid: 6, name: b"a:b", by_exec: true }),
            ("PERF_RECORD_COMM: a:6/6", Scheduling::Named { tid: 6, name: b"a", by_exec: false }),
            ("PERF_RECORD_EXIT(5:6):(5:5)", Scheduling::Exit { tid: 6, is_last: None }),
            (
                "sched_process_exit: comm=a pid=6 prio=120 group_dead=false",
                Scheduling::Exit { tid: 6, is_last: Some(false) },
            ),
            ("sched_waking: comm=a pid=6 prio=120 target_cpu=001", Scheduling::Waking { tid: 6 }),
            ("sched_wakeup_new:     a:6 [120] CPU:000", Scheduling::Waking { tid: 6 }),
            ("sched_migrate_task: comm=a pid=6", Scheduling::Other),
        ] {
            let text = format!("a-5 [001] d.h2. 1.000000: {text}");
            let line = parse(text.as_bytes());
            assert_eq!(line.map(|line| (line.event, line.in_interrupt)), Some((expected, true)), "{text}");
        }
        for text in ["", "hello", "a-5 [001] 1.5: x", "a [001] 1.5: sched_switch: x", "12:30:00 a: b", "a-5 [0] 1.5: "]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn lost_events_are_counted() {
        assert_eq!(lost(b"CPU:1 [LOST 12 EVENTS]"), Some(12));
        assert_eq!(lost(b"CPU:0 [7 EVENTS DROPPED]"), Some(7));
        assert_eq!(lost(b"  a 1 [000] 1.5: PERF_RECORD_LOST lost 5"), Some(5));
        assert_eq!(lost(b"CPU:x"), None);
    }
}
