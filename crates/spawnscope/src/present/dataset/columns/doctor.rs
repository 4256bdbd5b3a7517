//! The columns of the table `doctor`.

use super::super::column::Column;
use super::super::column::Get::{Instant, Int, Long, Real, Text, Truth};
use super::super::examination::{DoctorLine, Found};
use super::{int, span};

pub(in super::super) fn doctor<'a>() -> Vec<Column<DoctorLine<'a>>> {
    let mut columns = examination();
    columns.extend(findings());
    columns
}

/// What is the same in all rows of an examination.
fn examination<'a>() -> Vec<Column<DoctorLine<'a>>> {
    let required = Column::<DoctorLine<'a>>::required;
    let optional = Column::<DoctorLine<'a>>::optional;
    vec![
        required(
            "examination",
            Text(|line| Some(line.of.id.into())),
            "the examination: a hash of what it found, where and when",
        ),
        required(
            "examined",
            Instant(|line| Some(line.of.examined_unix_ns.div_euclid(1_000))),
            "when it was made, UTC",
        ),
        required(
            "host",
            Text(|line| Some(line.of.host.into())),
            "the machine: `uname -n`, or `--host`; as `runs.host`",
        ),
        required("kernel", Text(|line| Some(line.of.kernel.into())), "`uname -r`"),
        required(
            "examiner",
            Text(|_| Some(env!("CARGO_PKG_VERSION").into())),
            "the version of spawnscope that examined",
        ),
        optional(
            "fork_ns",
            Long(|line| span(line.of.diagnosis.launch.fork)),
            "what a fork costs there",
        ),
        optional(
            "exec_static_ns",
            Long(|line| span(line.of.diagnosis.launch.exec_static)),
            "what an exec of a static program costs there",
        ),
        optional(
            "exec_dynamic_ns",
            Long(|line| span(line.of.diagnosis.launch.exec_dynamic)),
            "what an exec of a dynamic program costs there",
        ),
        optional(
            "load_average",
            Real(|line| line.of.diagnosis.load.map(|load| load.average)),
            "load average meanwhile",
        ),
        optional(
            "cpus",
            Int(|line| line.of.diagnosis.load.map(|load| int(load.cpus))),
            "CPUs of the machine",
        ),
    ]
}

/// What a row is about. NULL in the only row of an examination that found nothing.
fn findings<'a>() -> Vec<Column<DoctorLine<'a>>> {
    let required = Column::<DoctorLine<'a>>::required;
    let optional = Column::<DoctorLine<'a>>::optional;
    vec![
        required(
            "place",
            Int(|line| Some(line.place)),
            "place in the examination, from 1: problems, notes, what could not be checked; the largest effect first",
        ),
        optional(
            "severity",
            Text(|line| match line.found {
                Found::Finding(finding) => Some(finding.severity.name().into()),
                Found::Unseen(_) => Some("unseen".into()),
                Found::Nothing => None,
            }),
            "`problem`, `note`, or `unseen`: could not be checked; NULL: nothing was found at all",
        ),
        optional(
            "check_name",
            Text(|line| match line.found {
                Found::Finding(finding) => Some(finding.check.into()),
                Found::Unseen(unseen) => Some(unseen.check.into()),
                Found::Nothing => None,
            }),
            "the check (`doctor --list`)",
        ),
        optional(
            "title",
            Text(|line| match line.found {
                Found::Finding(finding) => Some(finding.title.as_str().into()),
                Found::Unseen(unseen) => Some(unseen.what.as_str().into()),
                Found::Nothing => None,
            }),
            "what was found, or what could not be checked and why",
        ),
        optional(
            "evidence",
            Text(|line| Some(line.finding()?.evidence.join(". ").into())),
            "evidence: sentences",
        ),
        optional(
            "effect_ns",
            Long(|line| span(Some(line.finding()?.effect?.span))),
            "what it costs",
        ),
        optional(
            "effect_is_lower_bound",
            Truth(|line| Some(line.finding()?.effect?.is_lower_bound)),
            "whether it costs more than that",
        ),
        optional(
            "effect_of",
            Text(|line| Some(line.finding()?.effect?.of.into())),
            "what costs that much longer, such as `each launch`",
        ),
        optional(
            "effect_basis",
            Text(|line| Some(line.finding()?.effect?.basis.name().into())),
            "`measured` or `modelled`",
        ),
        optional(
            "fix",
            Text(|line| Some(line.finding()?.fix.join("\n").into())),
            "what to do; commands begin with two spaces",
        ),
        optional(
            "fix_cost",
            Text(|line| Some(line.finding()?.fix_cost.as_str().into())),
            "what the fix costs, or does not solve",
        ),
    ]
}
