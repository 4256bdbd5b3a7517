//! The rows of the dataset's tables: views of the findings about one recording, or of an
//! examination by `doctor`.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::analyze::explain::advice::Advice;
use crate::analyze::model::launch::{Exec, FailedExec, Launch};
use crate::analyze::model::phases::Phase;
use crate::analyze::sites::build_labels::{BuildLabel, BuildLabels};
use crate::analyze::sites::callers::{CallSite, Callers, Detail};
use crate::analyze::waits::attribution::AttributedWaits;
use crate::analyze::{CriticalPath, Forest, Report};
use crate::doctor::{Diagnosis, Finding};
use crate::event::Nanos;
use crate::present::text;

/// The data of a recording that is written to a dataset.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// Identifies the recording in all tables.
    pub run: &'a str,
    /// Whether arguments of commands and what quotes them are written.
    pub has_command_lines: bool,
    /// The version of spawnscope that made the recording.
    pub recorder: &'a str,
    pub forest: &'a Forest<'a>,
    pub report: &'a Report,
    pub path: Option<&'a CriticalPath>,
    pub waits: &'a [AttributedWaits],
    /// The labels of launches, in the order of `BuildLabel::ALL`.
    pub labels: &'a [BuildLabels; BuildLabel::ALL.len()],
}

pub(super) struct RunRow<'a>(pub(super) Contents<'a>);

pub(super) struct LaunchRow<'a> {
    pub(super) run: &'a str,
    pub(super) forest: &'a Forest<'a>,
    pub(super) index: usize,
    pub(super) launch: &'a Launch<'a>,
    pub(super) caller: Option<i32>,
    pub(super) path: Option<&'a CriticalPath>,
    labels: &'a [BuildLabels; BuildLabel::ALL.len()],
}

/// A row of `execs`: a successful or a failed exec.
pub(super) struct ExecRow<'a> {
    pub(super) run: &'a str,
    pub(super) launch: u64,
    pub(super) path: &'a [u8],
    /// When the call began, and the time within it.
    pub(super) enter: Option<Nanos>,
    pub(super) cost: Option<Nanos>,
    /// `None` if it failed.
    pub(super) succeeded: Option<&'a Exec<'a>>,
    pub(super) errno: Option<i32>,
    has_command_line: bool,
}

pub(super) struct CallerRow<'a> {
    pub(super) run: &'a str,
    pub(super) number: i32,
    pub(super) site: CallSite,
    pub(super) launches: u64,
    pub(super) total: Option<Nanos>,
    pub(super) tax: Option<Nanos>,
    pub(super) critical: Option<Nanos>,
}

pub(super) struct WaitRow<'a> {
    pub(super) run: &'a str,
    pub(super) waits: &'a AttributedWaits,
}

/// A row of `advice`: a finding whose fix is worth making.
pub(super) struct AdviceRow<'a> {
    pub(super) run: &'a str,
    pub(super) has_fix: bool,
    pub(super) advice: &'a Advice,
}

pub(super) struct RecordingRows<'a> {
    pub(super) runs: Vec<RunRow<'a>>,
    pub(super) launches: Vec<LaunchRow<'a>>,
    pub(super) execs: Vec<ExecRow<'a>>,
    pub(super) callers: Vec<CallerRow<'a>>,
    pub(super) waits: Vec<WaitRow<'a>>,
    pub(super) advice: Vec<AdviceRow<'a>>,
}

impl<'a> RecordingRows<'a> {
    pub(super) fn collect(contents: &Contents<'a>) -> RecordingRows<'a> {
        let (run, forest, path) = (contents.run, contents.forest, contents.path);
        let has_command_lines = contents.has_command_lines;
        let mut callers = CallerRows::new(run);
        let sites = Callers::find(forest, Detail::Line);
        let (mut launches, mut execs) = (Vec::new(), Vec::new());
        for (index, launch) in forest.launches.iter().enumerate() {
            if !launch.is_launch() {
                continue;
            }
            let row = LaunchRow { run, forest, index, launch, caller: None, path, labels: contents.labels };
            let caller = sites.call_site_of(index).map(|site| callers.add(site, &row));
            launches.push(LaunchRow { caller, ..row });
            let id = launch.id.0;
            execs.extend(launch.execs.iter().map(|exec| ExecRow::succeeded(run, id, exec, has_command_lines)));
            execs.extend(forest.failed_execs(index).map(|failed| ExecRow::failed(run, id, failed)));
        }
        if !has_command_lines {
            callers.rows.iter_mut().for_each(|row| row.site.text = None);
        }
        RecordingRows {
            runs: vec![RunRow(*contents)],
            launches,
            execs,
            callers: callers.rows,
            waits: contents.waits.iter().map(|waits| WaitRow { run, waits }).collect(),
            advice: contents
                .report
                .advices
                .worth
                .iter()
                .map(|advice| AdviceRow { run, has_fix: has_command_lines, advice })
                .collect(),
        }
    }
}

impl LaunchRow<'_> {
    pub(super) fn label(&self, label: BuildLabel) -> Option<Cow<'_, str>> {
        let index = BuildLabel::ALL.iter().position(|other| *other == label)?;
        self.labels[index].label_of(self.index).map(String::from_utf8_lossy)
    }

    pub(super) fn critical(&self) -> Option<Nanos> {
        Some(self.path?.launches.get(self.index)?.total())
    }

    pub(super) fn critical_tax(&self) -> Option<Nanos> {
        Some(self.path?.launches.get(self.index)?.tax())
    }

    /// Returns the time on the critical path in which the launch waited for a CPU, as a new process
    /// or as a running program.
    pub(super) fn critical_cpu_wait(&self) -> Option<Nanos> {
        let charges = self.path?.launches.get(self.index)?;
        Some(Nanos(charges.get(Phase::Queue).0 + charges.run_queue().0))
    }
}

impl<'a> ExecRow<'a> {
    fn succeeded(run: &'a str, launch: u64, exec: &'a Exec<'a>, has_command_line: bool) -> ExecRow<'a> {
        let (path, enter) = (exec.path(), exec.enter.get());
        let cost = exec.returned.get().zip(enter).map(|(returned, enter)| returned.since(enter));
        ExecRow { run, launch, path, enter, cost, succeeded: Some(exec), errno: None, has_command_line }
    }

    fn failed(run: &'a str, launch: u64, failed: FailedExec<'a>) -> ExecRow<'a> {
        let FailedExec { path, errno, enter, .. } = failed;
        let (enter, cost) = (Some(enter), Some(failed.cost()));
        ExecRow { run, launch, path, enter, cost, succeeded: None, errno: Some(errno), has_command_line: false }
    }

    /// Returns the arguments of a successful exec, if they are written.
    pub(super) fn command_line(&self) -> Option<String> {
        let exec = self.succeeded.filter(|_| self.has_command_line)?;
        Some(text::command_line(exec.arguments(), None))
    }
}

/// Collects call sites in the order of their first launch.
struct CallerRows<'a> {
    run: &'a str,
    rows: Vec<CallerRow<'a>>,
    numbers: HashMap<CallSite, usize>,
}

impl<'a> CallerRows<'a> {
    fn new(run: &'a str) -> CallerRows<'a> {
        CallerRows { run, rows: Vec::new(), numbers: HashMap::new() }
    }

    /// Adds a launch to the sums of its call site, and returns the call site's number.
    fn add(&mut self, site: &CallSite, launch: &LaunchRow<'_>) -> i32 {
        let index = *self.numbers.entry(site.clone()).or_insert(self.rows.len());
        if index == self.rows.len() {
            self.rows.push(CallerRow {
                run: self.run,
                number: i32::try_from(index).unwrap_or(i32::MAX),
                site: site.clone(),
                launches: 0,
                total: None,
                tax: None,
                critical: None,
            });
        }
        let row = &mut self.rows[index];
        row.launches += 1;
        let total = launch.launch.total(launch.forest.end);
        for (sum, more) in
            [(&mut row.total, total), (&mut row.tax, launch.launch.tax()), (&mut row.critical, launch.critical())]
        {
            if let Some(more) = more {
                sum.get_or_insert_default().0 += more.0;
            }
        }
        row.number
    }
}

/// The data of an examination that is written to a dataset.
#[derive(Clone, Copy)]
pub struct Examination<'a> {
    pub id: &'a str,
    /// Time of the examination, in nanoseconds since 1970 UTC.
    pub examined_unix_ns: i64,
    pub host: &'a str,
    pub kernel: &'a str,
    pub diagnosis: &'a Diagnosis,
}

/// A row of `doctor`: what one examination of a machine found, or what could not be examined.
pub(super) struct DoctorRow<'a> {
    pub(super) examination: &'a Examination<'a>,
    /// The position of the row in the examination, from 1.
    pub(super) position: i32,
    /// The check, the severity and the title. `None` if nothing was found, and everything could be
    /// examined.
    pub(super) subject: Option<[&'a str; 3]>,
    pub(super) finding: Option<&'a Finding>,
}

impl<'a> Examination<'a> {
    /// Returns the findings, and then what could not be examined. There is always at least one row,
    /// which shows that the machine was examined.
    pub(super) fn rows(&'a self) -> Vec<DoctorRow<'a>> {
        let found = self.diagnosis.findings.iter();
        let found = found.map(|one| (Some([one.check, one.severity.name(), &*one.title]), Some(one)));
        let not_examined = self.diagnosis.not_examined.iter();
        let not_examined = not_examined.map(|one| (Some([one.check, "unseen", &*one.what]), None));
        let mut subjects: Vec<_> = found.chain(not_examined).collect();
        if subjects.is_empty() {
            subjects.push((None, None));
        }
        let rows = (1..).zip(subjects);
        rows.map(|(position, (subject, finding))| DoctorRow { examination: self, position, subject, finding }).collect()
    }
}

impl DoctorRow<'_> {
    /// Returns the version of spawnscope that examined the machine.
    pub(super) fn examiner(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
