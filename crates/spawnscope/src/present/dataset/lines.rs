//! The rows of the dataset's tables: views of the findings about one recording.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::analyze::advice::Advice;
use crate::analyze::build_labels::{BuildLabel, BuildLabels};
use crate::analyze::callers::{CallSite, Callers, Detail};
use crate::analyze::launch::{Exec, FailedExec, Launch};
use crate::analyze::waits::attribution::AttributedWaits;
use crate::analyze::{CriticalPath, Forest, Report};
use crate::event::Nanos;

/// The data of a recording that is written to a dataset.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// Identifies the recording in all tables.
    pub run: &'a str,
    /// The version of spawnscope that made the recording.
    pub recorder: &'a str,
    /// The launches.
    pub forest: &'a Forest<'a>,
    /// The report on them.
    pub report: &'a Report,
    /// The critical path. `None` if it is unknown.
    pub path: Option<&'a CriticalPath>,
    /// The waits, summed by who waited for what.
    pub waits: &'a [AttributedWaits],
    /// The labels of launches, in the order of `BuildLabel::ALL`.
    pub labels: &'a [BuildLabels; BuildLabel::ALL.len()],
}

/// A row of `runs`.
pub(super) struct RunLine<'a>(pub(super) Contents<'a>);

/// A row of `launches`.
pub(super) struct LaunchLine<'a> {
    pub(super) run: &'a str,
    pub(super) forest: &'a Forest<'a>,
    pub(super) index: usize,
    pub(super) launch: &'a Launch<'a>,
    /// The number of the launch's call site.
    pub(super) caller: Option<i32>,
    pub(super) path: Option<&'a CriticalPath>,
    labels: &'a [BuildLabels; BuildLabel::ALL.len()],
}

/// A row of `execs`: a successful or a failed exec.
pub(super) struct ExecLine<'a> {
    pub(super) run: &'a str,
    pub(super) launch: u64,
    pub(super) exec: ExecAttempt<'a>,
}

/// A successful or a failed exec.
pub(super) enum ExecAttempt<'a> {
    Succeeded(&'a Exec<'a>),
    Failed(FailedExec<'a>),
}

/// A row of `callers`.
pub(super) struct CallerLine<'a> {
    pub(super) run: &'a str,
    pub(super) number: i32,
    pub(super) site: CallSite,
    pub(super) launches: u64,
    pub(super) total: Option<Nanos>,
    pub(super) tax: Option<Nanos>,
    pub(super) critical: Option<Nanos>,
}

/// A row of `waits`.
pub(super) struct WaitLine<'a> {
    pub(super) run: &'a str,
    pub(super) waits: &'a AttributedWaits,
}

/// A row of `advice`: a finding whose fix is worth making.
pub(super) struct AdviceLine<'a> {
    pub(super) run: &'a str,
    pub(super) advice: &'a Advice,
}

/// The rows of all tables of a recording.
pub(super) struct Lines<'a> {
    pub(super) runs: Vec<RunLine<'a>>,
    pub(super) launches: Vec<LaunchLine<'a>>,
    pub(super) execs: Vec<ExecLine<'a>>,
    pub(super) callers: Vec<CallerLine<'a>>,
    pub(super) waits: Vec<WaitLine<'a>>,
    pub(super) advice: Vec<AdviceLine<'a>>,
}

impl<'a> Lines<'a> {
    pub(super) fn collect(contents: &Contents<'a>) -> Lines<'a> {
        let (run, forest, path) = (contents.run, contents.forest, contents.path);
        let mut callers = CallerLines::new(run);
        let sites = Callers::find(forest, Detail::Line);
        let (mut launches, mut execs) = (Vec::new(), Vec::new());
        for (index, launch) in forest.launches.iter().enumerate() {
            if !launch.is_launch() {
                continue;
            }
            let line = LaunchLine {
                run,
                forest,
                index,
                launch,
                caller: None,
                path,
                labels: contents.labels,
            };
            let caller = sites.call_site_of(index).map(|site| callers.add(site, &line));
            launches.push(LaunchLine { caller, ..line });
            let of_launch = |exec| ExecLine {
                run,
                launch: launch.id.0,
                exec,
            };
            execs.extend(launch.execs.iter().map(ExecAttempt::Succeeded).map(of_launch));
            execs.extend(forest.failed_execs(index).map(ExecAttempt::Failed).map(of_launch));
        }
        Lines {
            runs: vec![RunLine(*contents)],
            launches,
            execs,
            callers: callers.lines,
            waits: contents.waits.iter().map(|waits| WaitLine { run, waits }).collect(),
            advice: contents
                .report
                .advices
                .worth
                .iter()
                .map(|advice| AdviceLine { run, advice })
                .collect(),
        }
    }
}

impl LaunchLine<'_> {
    /// Returns a label of the launch.
    pub(super) fn label(&self, label: BuildLabel) -> Option<Cow<'_, str>> {
        let index = BuildLabel::ALL.iter().position(|other| *other == label)?;
        self.labels[index].label_of(self.index).map(String::from_utf8_lossy)
    }

    /// Returns the launch's time on the critical path.
    pub(super) fn critical(&self) -> Option<Nanos> {
        Some(self.path?.launches.get(self.index)?.total())
    }

    /// Returns the launch tax that is on the critical path.
    pub(super) fn critical_tax(&self) -> Option<Nanos> {
        Some(self.path?.launches.get(self.index)?.tax())
    }
}

/// Collects call sites in the order of their first launch.
struct CallerLines<'a> {
    run: &'a str,
    lines: Vec<CallerLine<'a>>,
    numbers: HashMap<CallSite, usize>,
}

impl<'a> CallerLines<'a> {
    fn new(run: &'a str) -> CallerLines<'a> {
        CallerLines {
            run,
            lines: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// Adds a launch to the sums of its call site, and returns the call site's number.
    fn add(&mut self, site: &CallSite, launch: &LaunchLine<'_>) -> i32 {
        let index = *self.numbers.entry(site.clone()).or_insert(self.lines.len());
        if index == self.lines.len() {
            self.lines.push(CallerLine {
                run: self.run,
                number: i32::try_from(index).unwrap_or(i32::MAX),
                site: site.clone(),
                launches: 0,
                total: None,
                tax: None,
                critical: None,
            });
        }
        let line = &mut self.lines[index];
        line.launches += 1;
        let total = launch.launch.total(launch.forest.end);
        for (sum, more) in [
            (&mut line.total, total),
            (&mut line.tax, launch.launch.tax()),
            (&mut line.critical, launch.critical()),
        ] {
            if let Some(more) = more {
                sum.get_or_insert_default().0 += more.0;
            }
        }
        line.number
    }
}
