//! The columns of the table `doctor`.

use super::super::column::Column;
use super::super::column::Getter::{Bool, Instant, Int, Long, Real, Text};
use super::super::examination::{DoctorRow, RowSubject};
use super::{int, span};

pub(in super::super) fn doctor<'a>() -> Vec<Column<DoctorRow<'a>>> {
    let mut columns = examination();
    columns.extend(findings());
    columns
}

/// Returns the columns that are the same in all rows of an examination.
fn examination<'a>() -> Vec<Column<DoctorRow<'a>>> {
    let required = Column::<DoctorRow<'a>>::required;
    let optional = Column::<DoctorRow<'a>>::optional;
    vec![
        required(
            "examination",
            Text(|row| Some(row.examination.id.into())),
            "identifies the examination: a hash of its findings, host and time",
        ),
        required(
            "examined",
            Instant(|row| Some(row.examination.examined_unix_ns.div_euclid(1_000))),
            "time of the examination, UTC",
        ),
        required(
            "host",
            Text(|row| Some(row.examination.host.into())),
            "the machine: `uname -n`, or `--host`; as `runs.host`",
        ),
        required("kernel", Text(|row| Some(row.examination.kernel.into())), "`uname -r`"),
        required(
            "examiner",
            Text(|_| Some(env!("CARGO_PKG_VERSION").into())),
            "the version of spawnscope that examined the machine",
        ),
        optional("fork_ns", Long(|row| span(row.examination.diagnosis.launch.fork)), "time of a fork on the machine"),
        optional(
            "exec_static_ns",
            Long(|row| span(row.examination.diagnosis.launch.exec_static)),
            "time of an exec of a static program on the machine",
        ),
        optional(
            "exec_dynamic_ns",
            Long(|row| span(row.examination.diagnosis.launch.exec_dynamic)),
            "time of an exec of a dynamic program on the machine",
        ),
        optional(
            "load_average",
            Real(|row| row.examination.diagnosis.load.map(|load| load.average)),
            "load average during the examination",
        ),
        optional("cpus", Int(|row| row.examination.diagnosis.load.map(|load| int(load.cpus))), "number of CPUs"),
    ]
}

/// Returns the columns of a finding. They are NULL in the only row of an examination that found nothing.
fn findings<'a>() -> Vec<Column<DoctorRow<'a>>> {
    let required = Column::<DoctorRow<'a>>::required;
    let optional = Column::<DoctorRow<'a>>::optional;
    vec![
        required(
            "place",
            Int(|row| Some(row.position)),
            "position in the examination, from 1: problems, then notes, then what could not be checked; the largest effect first",
        ),
        optional(
            "severity",
            Text(|row| match row.subject {
                RowSubject::Finding(finding) => Some(finding.severity.name().into()),
                RowSubject::NotExamined(_) => Some("unseen".into()),
                RowSubject::Nothing => None,
            }),
            "`problem`, `note`, or `unseen`: could not be checked; NULL: nothing was found at all",
        ),
        optional(
            "check_name",
            Text(|row| match row.subject {
                RowSubject::Finding(finding) => Some(finding.check.into()),
                RowSubject::NotExamined(not_examined) => Some(not_examined.check.into()),
                RowSubject::Nothing => None,
            }),
            "the check (`doctor --list`)",
        ),
        optional(
            "title",
            Text(|row| match row.subject {
                RowSubject::Finding(finding) => Some(finding.title.as_str().into()),
                RowSubject::NotExamined(not_examined) => Some(not_examined.what.as_str().into()),
                RowSubject::Nothing => None,
            }),
            "what was found, or what could not be checked and why",
        ),
        optional("evidence", Text(|row| Some(row.finding()?.evidence.join(". ").into())), "the evidence, as sentences"),
        optional("effect_ns", Long(|row| span(Some(row.finding()?.effect?.span))), "time that it costs"),
        optional(
            "effect_is_lower_bound",
            Bool(|row| Some(row.finding()?.effect?.is_lower_bound)),
            "whether it may cost more than that",
        ),
        optional(
            "effect_of",
            Text(|row| Some(row.finding()?.effect?.affected.into())),
            "what takes that much longer, such as `each launch`",
        ),
        optional(
            "effect_basis",
            Text(|row| Some(row.finding()?.effect?.basis.name().into())),
            "`measured` or `modelled`",
        ),
        optional(
            "fix",
            Text(|row| Some(row.finding()?.fix.join("\n").into())),
            "what to do; commands begin with two spaces",
        ),
        optional(
            "fix_cost",
            Text(|row| Some(row.finding()?.fix_cost.as_str().into())),
            "what the fix costs, or does not solve",
        ),
    ]
}
