//! Logs of the kernel's scheduler, as `perf script`, `trace-cmd report` and ftrace write them.
//! `line` parses lines, `tasks` keeps the state of each thread. This file puts lines in order, and
//! finds the command: what `perf record` or `trace-cmd record` executed. Without one, the whole
//! machine is recorded.

mod line;
mod tasks;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use spawnscope_data::event::{Event, Missing, Nanos};
use spawnscope_data::rows::Scope;

use crate::input::{Count, Lines};
use crate::text::{MAX_STEP_NS, after, find, number};
use crate::{About, BATCH, ImportError, Source};
use line::{Line, Scheduling, is_heading, lost, parse};
use tasks::Tasks;

/// Number of lines that are kept to put them in order. CPUs have buffers of their own, which the
/// tools merge, but not always exactly.
const WINDOW: usize = 256;
/// Number of lines at the beginning among which one must be an event.
const MAX_STRANGE_LINES: u64 = 1_000;
/// The tools whose first exec is that of the command.
const TOOLS: [&[u8]; 3] = [b"perf-exec", b"perf", b"trace-cmd"];

/// A log that is being read.
pub struct Log {
    lines: Lines,
    count: Count,
    /// The next lines, by their times, with their numbers.
    window: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    tasks: Tasks,
    origin: Nanos,
    /// The time of the last line, in the order of the log.
    last: u64,
    command: Option<Vec<u8>>,
    lost: u64,
    cpus: u32,
}

impl Log {
    pub fn of_one(mut lines: Lines) -> Result<Log, ImportError> {
        let beginning = lines.beginning()?;
        let has_execs = find(beginning, b"sched_process_exec").is_some();
        let command = command_in(beginning, has_execs);
        let tasks = Tasks::new(command.as_ref().map(|(tid, _)| *tid), has_execs);
        let command = command.map(|(_, path)| path);
        let (count, window) = (Count::default(), BinaryHeap::new());
        let mut log = Log { lines, count, window, tasks, origin: Nanos(0), last: 0, command, lost: 0, cpus: 0 };
        while log.window.len() < WINDOW && log.fill()? {}
        let Some(Reverse((at, ..))) = log.window.peek() else {
            return Err(log.lines.not_of("perf"));
        };
        log.origin = Nanos(*at);
        Ok(log)
    }

    /// Reads one line. Returns false at the end.
    fn fill(&mut self) -> Result<bool, ImportError> {
        let mut line = Vec::new();
        if !self.lines.next(&mut line)? {
            return Ok(false);
        }
        self.count.lines += 1;
        // A torn line may have any time.
        let is_near = |at: &u64| *at == 0 || self.last == 0 || at.abs_diff(self.last) < MAX_STEP_NS;
        let parsed = parse(&line).map(|parsed| parsed.at).filter(is_near);
        if let Some(events) = lost(&line) {
            self.lost = self.lost.saturating_add(events);
        } else if let Some(at) = parsed {
            self.cpus = self.cpus.max(cpu_of(&line));
            match at {
                // What existed when perf began.
                0 => self.tasks.learn(parse(&line).map(|line| line.event)),
                _ => {
                    self.last = at;
                    self.window.push(Reverse((at, self.lines.number, line)));
                }
            }
        } else if !is_heading(&line) {
            self.count.refuse(&self.lines.path, self.lines.number, &line);
        }
        let refused = self.count.refused.as_ref().map_or(0, |refused| refused.count);
        if refused == MAX_STRANGE_LINES && refused == self.count.lines {
            return Err(self.lines.not_of("perf"));
        }
        Ok(true)
    }

    fn add_next(&mut self) {
        if let Some(Reverse((_, _, line))) = self.window.pop()
            && let Some(line) = parse(&line)
        {
            self.tasks.add(&line);
        }
    }
}

impl Source for Log {
    fn read(&mut self) -> Result<bool, ImportError> {
        while self.tasks.ready.len() < BATCH {
            if !self.fill()? {
                return Ok(false);
            }
            if self.window.len() > WINDOW {
                self.add_next();
            }
        }
        Ok(true)
    }

    fn finish(&mut self) {
        while !self.window.is_empty() {
            self.add_next();
        }
        self.tasks.finish();
    }

    fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.tasks.ready)
    }

    fn count(&self) -> &Count {
        &self.count
    }

    fn about(&self) -> About {
        let mut missing = vec![
            ("arguments and directories", "arguments, and advice that compares them"),
            ("system calls", "create, load, reap, mechanisms, failed execs, and what threads waited in"),
        ];
        if !self.tasks.has_switches {
            missing.push((Missing::SCHEDULER, "CPU times, waits for a CPU, and what ends waits"));
        }
        About {
            tool: "perf",
            scope: if self.command.is_some() { Scope::Command } else { Scope::System },
            root: self.tasks.root,
            command: self.command.iter().cloned().collect(),
            origin: self.tasks.root_began.unwrap_or(self.origin),
            end: self.tasks.root_ended.unwrap_or(self.tasks.now),
            has_ended: self.tasks.root_ended.is_some(),
            cpus: self.cpus,
            missing,
            lost: self.lost,
            ..About::default()
        }
    }
}

/// Returns the smallest number of CPUs of a machine that has the CPU of this line.
fn cpu_of(line: &[u8]) -> u32 {
    let cpu = after(line, b" [").and_then(number).filter(|(_, rest)| rest.starts_with(b"]"));
    cpu.and_then(|(cpu, _)| u32::try_from(cpu).ok()).filter(|cpu| *cpu < 65_536).map(|cpu| cpu + 1).unwrap_or_default()
}

/// Returns the thread in which a tool executed the command, and the command's file. `None` if the
/// tool recorded the whole machine: without a command, or with one that only sleeps.
fn command_in(beginning: &[u8], has_execs: bool) -> Option<(i32, Vec<u8>)> {
    let mut names: HashMap<i32, &[u8]> = HashMap::new();
    let mut is_first = true;
    for line in beginning.split(|byte| *byte == b'\n') {
        let Some(Line { at, tid, name, event, .. }) = parse(line) else { continue };
        let executed = match event {
            Scheduling::Exec { tid, path, .. } => Some((tid, path)),
            Scheduling::Named { tid, name, by_exec: true } if at > 0 => (!has_execs).then_some((tid, name)),
            _ => None,
        };
        if let Some((tid, path)) = executed
            && (is_first || names.get(&tid).is_some_and(|name| TOOLS.contains(name)))
        {
            let is_sleep = path.rsplit(|byte| *byte == b'/').next() == Some(b"sleep");
            return (!is_sleep).then(|| (tid, path.to_vec()));
        }
        match event {
            Scheduling::Switch { next, next_name, .. } => drop(names.insert(next, next_name)),
            Scheduling::Named { tid, name, by_exec: false } => drop(names.insert(tid, name)),
            Scheduling::Fork { parent, child, .. } => {
                let name = names.get(&parent).copied().unwrap_or(name);
                names.insert(child, name);
            }
            _ => {}
        }
        // A line about a new name already begins with that name.
        if !matches!(event, Scheduling::Named { .. }) {
            names.insert(tid, name);
            is_first &= at == 0;
        }
    }
    None
}

#[cfg(test)]
mod tests;
