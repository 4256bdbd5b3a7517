//! Recordings, and examinations by `doctor`, as Parquet tables of a dataset. This file collects the
//! rows: views of the findings about one recording, or of an examination. `columns` declares the
//! columns of each table, and writes them. The caller decides where the files are and what they are
//! called.

mod columns;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;

use parquet::errors::{ParquetError, Result};

use self::columns::{Column, write_rows};
use super::text;
use crate::analyze::explain::advice::Advice;
use crate::analyze::model::launch::{Exec, FailedExec, Launch};
use crate::analyze::model::phases::Phase;
use crate::analyze::sites::build_labels::{BuildLabel, BuildLabels};
use crate::analyze::sites::callers::{CallSite, Callers, Detail};
use crate::analyze::waits::attribution::AttributedWaits;
use crate::analyze::{CriticalPath, Forest, Report};
use crate::doctor::{Diagnosis, Finding};
use crate::event::Nanos;

/// The version of the tables. It is raised when a column changes its meaning or is removed.
pub const DATASET_VERSION: u32 = 2;

spawnscope_data::named_enum! {
    /// A table. Its name is also the name of its directory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Table {
        Launches = "launches",
        /// One row per exec, successful or failed.
        Execs = "execs",
        Callers = "callers",
        Waits = "waits",
        Advice = "advice",
        /// One row per recording. Written last: a recording is complete in the dataset once it has
        /// this row.
        Runs = "runs",
        /// One row per finding of the doctor on a machine. No recording has rows here.
        Doctor = "doctor",
    }
}

impl Table {
    /// The tables of a recording, in the order in which they are written.
    pub const FOR_RECORDINGS: [Table; 6] =
        [Table::Launches, Table::Execs, Table::Callers, Table::Waits, Table::Advice, Table::Runs];

    /// Returns its columns as rows of a Markdown table: name, type, whether values can be NULL, and
    /// description.
    pub fn documentation(self) -> Vec<String> {
        fn all<R>(columns: &[Column<R>]) -> Vec<String> {
            columns.iter().map(Column::documentation).collect()
        }
        match self {
            Table::Launches => all(&columns::launches()),
            Table::Execs => all(&columns::execs()),
            Table::Callers => all(&columns::callers()),
            Table::Waits => all(&columns::waits()),
            Table::Advice => all(&columns::advice()),
            Table::Runs => all(&columns::runs()),
            Table::Doctor => all(&columns::doctor()),
        }
    }
}

/// The rows of a recording or of an examination, ready to be written table by table.
pub enum Dataset<'a> {
    Recording(RecordingRows<'a>),
    Examination(Vec<DoctorRow<'a>>),
}

impl<'a> Dataset<'a> {
    pub fn new(contents: &Contents<'a>) -> Dataset<'a> {
        Dataset::Recording(RecordingRows::collect(contents))
    }

    pub fn of_examination(examination: &'a Examination<'a>) -> Dataset<'a> {
        Dataset::Examination(examination.rows())
    }

    /// Returns the tables in the order in which they must be written.
    pub fn tables(&self) -> &'static [Table] {
        match self {
            Dataset::Recording(_) => &Table::FOR_RECORDINGS,
            Dataset::Examination(_) => &[Table::Doctor],
        }
    }

    pub fn write<W: Write + Send>(&self, table: Table, out: W) -> Result<()> {
        match (self, table) {
            (Dataset::Recording(rows), Table::Launches) => write_rows(out, table, &columns::launches(), &rows.launches),
            (Dataset::Recording(rows), Table::Execs) => write_rows(out, table, &columns::execs(), &rows.execs),
            (Dataset::Recording(rows), Table::Callers) => write_rows(out, table, &columns::callers(), &rows.callers),
            (Dataset::Recording(rows), Table::Waits) => write_rows(out, table, &columns::waits(), &rows.waits),
            (Dataset::Recording(rows), Table::Advice) => write_rows(out, table, &columns::advice(), &rows.advice),
            (Dataset::Recording(rows), Table::Runs) => write_rows(out, table, &columns::runs(), &rows.runs),
            (Dataset::Examination(rows), Table::Doctor) => write_rows(out, table, &columns::doctor(), rows),
            _ => Err(ParquetError::General(format!("these rows do not belong to table {}", table.name()))),
        }
    }
}

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

struct RunRow<'a>(Contents<'a>);

struct LaunchRow<'a> {
    run: &'a str,
    forest: &'a Forest<'a>,
    index: usize,
    launch: &'a Launch<'a>,
    caller: Option<i32>,
    path: Option<&'a CriticalPath>,
    labels: &'a [BuildLabels; BuildLabel::ALL.len()],
}

/// A row of `execs`: a successful or a failed exec.
struct ExecRow<'a> {
    run: &'a str,
    launch: u64,
    path: &'a [u8],
    /// When the call began, and the time within it.
    enter: Option<Nanos>,
    cost: Option<Nanos>,
    /// `None` if it failed.
    succeeded: Option<&'a Exec<'a>>,
    errno: Option<i32>,
    has_command_line: bool,
}

struct CallerRow<'a> {
    run: &'a str,
    number: i32,
    site: CallSite,
    launches: u64,
    total: Option<Nanos>,
    tax: Option<Nanos>,
    critical: Option<Nanos>,
}

struct WaitRow<'a> {
    run: &'a str,
    waits: &'a AttributedWaits,
}

/// A row of `advice`: a finding whose fix is worth making.
struct AdviceRow<'a> {
    run: &'a str,
    has_fix: bool,
    advice: &'a Advice,
}

pub struct RecordingRows<'a> {
    runs: Vec<RunRow<'a>>,
    launches: Vec<LaunchRow<'a>>,
    execs: Vec<ExecRow<'a>>,
    callers: Vec<CallerRow<'a>>,
    waits: Vec<WaitRow<'a>>,
    advice: Vec<AdviceRow<'a>>,
}

impl<'a> RecordingRows<'a> {
    fn collect(contents: &Contents<'a>) -> RecordingRows<'a> {
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
    fn label(&self, label: BuildLabel) -> Option<Cow<'_, str>> {
        let index = BuildLabel::ALL.iter().position(|other| *other == label)?;
        self.labels[index].label_of(self.index).map(String::from_utf8_lossy)
    }

    fn critical(&self) -> Option<Nanos> {
        Some(self.path?.launches.get(self.index)?.total())
    }

    fn critical_tax(&self) -> Option<Nanos> {
        Some(self.path?.launches.get(self.index)?.tax())
    }

    /// Returns the time on the critical path in which the launch waited for a CPU, as a new process
    /// or as a running program.
    fn critical_cpu_wait(&self) -> Option<Nanos> {
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
    fn command_line(&self) -> Option<String> {
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
pub struct DoctorRow<'a> {
    examination: &'a Examination<'a>,
    /// The position of the row in the examination, from 1.
    position: i32,
    /// The check, the severity and the title. `None` if nothing was found, and everything could be
    /// examined.
    subject: Option<[&'a str; 3]>,
    finding: Option<&'a Finding>,
}

impl<'a> Examination<'a> {
    /// Returns the findings, and then what could not be examined. There is always at least one row,
    /// which shows that the machine was examined.
    fn rows(&'a self) -> Vec<DoctorRow<'a>> {
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
    fn examiner(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
