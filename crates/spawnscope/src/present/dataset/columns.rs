//! The columns of each table: a column has a name, a type, a description, and a function that gets
//! its value from a row. The file's schema and the documentation both follow from this one
//! declaration, and a test compares it with `docs/guide/parquet.md`. New columns are added at the
//! end. If a column changes its meaning or is removed, `DATASET_VERSION` must be raised.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::{AdviceRow, CallerRow, Contents, DATASET_VERSION, DoctorRow, ExecRow, LaunchRow, RunRow, Table, WaitRow};
use crate::analyze::Report;
use crate::analyze::model::launch::Outcome;
use crate::analyze::model::phases::Phase;
use crate::analyze::sites::build_labels::BuildLabel;
use crate::analyze::waits::attribution::WaitTarget;
use crate::event::{Nanos, syscalls};
use crate::present::{json, text};

const RUN: &str = "the recording: a hash of its contents";

/// Declares columns, each as `required TYPE NAME = VALUE, DESCRIPTION;`. The value of an `optional`
/// column can be `None`.
macro_rules! columns {
    (@required $value:expr) => { Some($value) };
    (@optional $value:expr) => { $value };
    (|$row:ident: $row_type:ty| $($presence:ident $kind:ident $name:literal = $value:expr, $description:expr;)*) => {
        vec![$(Column::<$row_type>::$presence(
            $name,
            Getter::$kind(|$row| columns!(@$presence $value)),
            $description,
        )),*]
    };
}

pub(super) fn launches<'a>() -> Vec<Column<LaunchRow<'a>>> {
    columns! { |row: LaunchRow<'a>|
        required Text "run" = row.run.into(), RUN;
        required Long "launch" = long(row.launch.id.0), "its number in the recording, in order of creation";
        optional Long "parent" = row.launch.parent.get().map(|id| long(id.0)), "the process that requested it, as in `launch`";
        optional Int "pid" = row.launch.pid.get().map(|pid| pid.0), "its pid";
        required Int "depth" = int(row.launch.depth), "its depth in the tree";
        required Text "origin" = Cow::Borrowed(row.launch.origin.name()),
            "`launched`, `command` (the recorded command) or `orphan` (its creation was lost)";
        optional Text "mechanism" = row.launch.mechanism.map(|mechanism| mechanism.name().into()),
            "`fork`, `vfork`, `posix_spawn`, `clone` or `clone3`";
        required Text "command" = String::from_utf8_lossy(&row.launch.command.label()).into_owned().into(),
            "base name of its last program; in parentheses if it never executed one";
        optional Int "caller" = row.caller, "its call site, as in `callers.caller`";
        optional Long "start_ns" = span(row.launch.start()), "start of the parent's fork call, since the recording began";
        optional Long "total_ns" = span(row.launch.end().and(row.launch.total(row.forest.end))),
            "from start_ns to its reaping; NULL if it had not ended when the recording did";
        optional Long "create_ns" = span(row.launch.phases.get(Phase::Create)), "phase create: from the parent's call until the process exists";
        optional Long "queue_ns" = span(row.launch.phases.get(Phase::Queue)), "phase queue: waiting for the first CPU";
        optional Long "setup_ns" = span(row.launch.phases.get(Phase::Setup)),
            "phase setup: from its first moment on a CPU, or from the end of the last process that it launched before its exec, until the exec; before version 2 of the dataset, always from its first moment on a CPU";
        optional Long "exec_ns" = span(row.launch.phases.get(Phase::Exec)), "phase exec: within successful execs";
        optional Long "load_ns" = span(row.launch.phases.get(Phase::Load)), "phase load: the dynamic loader";
        optional Long "run_ns" = span(row.launch.phases.get(Phase::Run)), "phase run: the program's own work";
        optional Long "teardown_ns" = span(row.launch.phases.get(Phase::Teardown)),
            "phase teardown: from the start of its exit until the parent can reap it";
        optional Long "reap_ns" = span(row.launch.phases.get(Phase::Reap)), "phase reap: from then until the parent's wait returned";
        optional Long "cpu_ns" = span(row.launch.cpu.get()), "CPU time of its threads";
        optional Long "critical_ns" = span(row.critical()), "its time on the critical path";
        optional Long "critical_tax_ns" = span(row.critical_tax()), "its start-up on the critical path";
        optional Long "critical_cpu_wait_ns" = span(row.critical_cpu_wait()),
            "the part of critical_ns that it waited for a CPU, which depends on the load of the machine";
        optional Int "exit_code" = exit_code(row.launch.outcome), "its exit code; NULL if unknown or if a signal killed it";
        optional Int "exit_signal" = exit_signal(row.launch.outcome), "the signal that killed it";
        optional Long "parent_rss_bytes" = row.launch.parent_rss_bytes.get().map(long), "resident memory of the parent at its creation";
        optional Text "target" = row.label(BuildLabel::Target),
            "label `target`: output of the ninja edge that it belongs to, or the file that the compiler, linker or archiver among its ancestors makes";
        optional Text "crate" = row.label(BuildLabel::Crate), "label `crate`: the crate that cargo builds or tests, or whose build script it runs";
        optional Text "directory" = row.label(BuildLabel::Directory),
            "label `directory`: directory of the make or ninja that it descends from, relative to the directory of the command";
        optional Text "package" = row.label(BuildLabel::Package), "label `package`: the cargo package, or the npm package and script";
        optional Text "test" = row.label(BuildLabel::Test), "label `test`: the pytest or cargo-nextest test";
        optional Text "cmake_target" = row.label(BuildLabel::Cmake), "label `cmake`: the CMake target";
    }
}

pub(super) fn execs<'a>() -> Vec<Column<ExecRow<'a>>> {
    columns! { |row: ExecRow<'a>|
        required Text "run" = row.run.into(), RUN;
        required Long "launch" = long(row.launch),
            "the process, as in `launches.launch`; its successful execs come first, in order, then the failed ones";
        required Text "path" = lossy(row.path), "the file as given";
        optional Text "command_line" = row.command_line().map(Cow::from),
            "the arguments, quoted for a shell, secrets masked; NULL if it failed, or with `--no-command-lines`";
        optional Bool "command_line_cut" = Some(row.succeeded?.argv_cut), "whether the arguments were too long to be recorded completely";
        optional Text "interpreter" = row.succeeded?.interpreter().map(lossy), "interpreter of a `#!` script";
        optional Text "cwd" = row.succeeded?.cwd().map(lossy), "working directory";
        optional Long "enter_ns" = span(row.enter), "time of the call, since the recording began";
        optional Long "exec_ns" = span(row.cost), "time within the call";
        optional Long "load_ns" = span(row.succeeded?.load()), "time in the dynamic loader; 0 for a static program";
        optional Int "load_opens" = row.succeeded?.load_opens.get().map(int), "files that the loader opened";
        optional Int "load_failed_opens" = row.succeeded?.load_failed_opens.get().map(int), "look-ups by the loader that found no file";
        optional Int "errno" = row.errno, "error number of a failed exec; NULL if it succeeded";
    }
}

pub(super) fn callers<'a>() -> Vec<Column<CallerRow<'a>>> {
    columns! { |row: CallerRow<'a>|
        required Text "run" = row.run.into(), RUN;
        required Int "caller" = row.number, "its number in the recording, which `launches.caller` refers to";
        required Text "language" = row.site.language.name().into(), "`native`, `bash`, `dash`, `python`, `perl`, `make`, `node`, ...";
        optional Text "file" = row.site.file.as_deref().map(lossy), "source file";
        optional Int "line" = row.site.line.map(int), "line in the file, from 1";
        optional Text "function" = row.site.function.as_deref().map(lossy), "function, or target of make; also NULL outside of functions";
        optional Text "module" = row.site.module.as_deref().map(lossy), "ELF file with the machine code, or template of a generated makefile";
        optional Text "program" = row.site.program.as_deref().map(lossy), "the program that ran the script, if no file is known";
        optional Text "text" = row.site.text.as_deref().map(lossy), "the line of a script given with -c; NULL with `--no-command-lines`";
        required Long "launches" = long(row.launches), "number of launches that it requested";
        optional Long "total_ns" = span(row.total), "sum of their wall times";
        optional Long "tax_ns" = span(row.tax), "sum of their start-up";
        optional Long "critical_ns" = span(row.critical), "sum of their times on the critical path";
    }
}

pub(super) fn waits<'a>() -> Vec<Column<WaitRow<'a>>> {
    columns! { |row: WaitRow<'a>|
        required Text "run" = row.run.into(), RUN;
        required Text "command" = lossy(&row.waits.command), "the program that waited";
        optional Text "syscall" = row.waits.syscall.and_then(syscalls::name).map(Cow::from), "the system call";
        optional Text "object" = row.waits.object.as_ref().map(|object| object.kind.name().into()), "the kind of object that was waited for";
        optional Text "object_path" = Some(lossy(row.waits.object.as_ref()?.path.as_deref()?)),
            "its path, or the address of a socket's peer, if all waits were for the same object";
        optional Text "on" = row.waits.targets.first().map(|targets| target_kind(&targets.target).into()),
            "what ended most of the waits: `launch`, `process` (not recorded) or `scanner`";
        optional Text "on_name" = row.waits.targets.first().and_then(|targets| target_name(&targets.target)).map(lossy),
            "the program of the launch, process or scanner";
        required Long "count" = long(row.waits.count), "number of waits";
        required Long "total_ns" = long(row.waits.parts.total().0), "sum of the times of these waits";
        required Long "tax_ns" = long(row.waits.parts.tax.0), "the part that is start-up";
        required Long "run_ns" = long(row.waits.parts.run.0), "the part that is phase run";
        required Long "run_waiting_ns" = long(row.waits.parts.run_waiting.0), "the part of phase run during which the launched processes waited";
        required Long "reap_ns" = long(row.waits.parts.reap.0), "the part that is late reaping";
        required Long "queue_ns" = long(row.waits.parts.queue.0), "the part that is waiting for a CPU";
        required Long "other_ns" = long(row.waits.parts.other.0), "the part that is not attributed";
    }
}

pub(super) fn advice<'a>() -> Vec<Column<AdviceRow<'a>>> {
    columns! { |row: AdviceRow<'a>|
        required Text "run" = row.run.into(), RUN;
        required Text "rule" = row.advice.finding.rule.into(), "the rule that found it; the same finding has the same rule in all runs";
        required Text "title" = row.advice.finding.title.as_str().into(), "the problem";
        required Long "saving_ns" = long(row.advice.saving[0].0), "predicted saving of wall time";
        required Long "saving_low_ns" = long(row.advice.saving[1].0), "lower end of the confidence interval";
        required Long "saving_high_ns" = long(row.advice.saving[2].0), "upper end of the confidence interval";
        required Long "launches" = long(row.advice.finding.launches.len() as u64), "number of launches that the fix affects";
        optional Text "file" = Some(lossy(row.advice.callers.largest.first()?.0.file.as_deref()?)),
            "file of the call site with most of these launches";
        optional Int "line" = row.advice.callers.largest.first()?.0.line.map(int), "line in this file";
        required Text "fix" = if row.has_fix { row.advice.finding.fix.join("\n").into() } else { Cow::from("") }, "what to do; empty with `--no-command-lines`";
        required Bool "is_foreign" = row.advice.foreign.is_some(), "whether the code of this call site is generated or third-party";
    }
}

pub(super) fn runs<'a>() -> Vec<Column<RunRow<'a>>> {
    columns! { |row: RunRow<'a>|
        required Text "run" = row.0.run.into(), RUN;
        required Instant "started" = row.0.forest.started_unix_ns.div_euclid(1_000), "when the recording began, UTC";
        optional Text "commit" = label(row.0.report, "commit"), "label `commit`";
        optional Text "branch" = label(row.0.report, "branch"), "label `branch`";
        optional Text "ci_run" = label(row.0.report, "run"), "label `run`: the run's number in the CI service";
        optional Text "attempt" = label(row.0.report, "attempt"), "label `attempt`, from 1";
        optional Text "host" = label(row.0.report, "host"), "label `host`: `uname -n`";
        optional Text "kernel" = label(row.0.report, "kernel"), "label `kernel`: `uname -r`";
        optional Text "arch" = label(row.0.report, "arch"), "label `arch`: `uname -m`";
        optional Text "cpu" = label(row.0.report, "cpu"), "label `cpu`: the processor's model";
        optional Text "image" = label(row.0.report, "image"), "label `image`: the container's image";
        required Text "labels" = json::labels(row.0.report).to_string().into(), "all labels, as a JSON object";
        optional Text "command" = command(&row.0).map(Cow::from), "the command, quoted for a shell; NULL without one (-p, -a), or with `--no-command-lines`";
        required Text "scope" = row.0.report.info.scope.name().into(), "`command`, `process` (-p) or `system` (-a)";
        required Text "collector" = row.0.report.info.collector.as_str().into(), "`ebpf`, `ptrace`, or `import:` and the format of a log";
        required Text "recorder" = row.0.recorder.into(), "the version of spawnscope that made the recording";
        required Int "cpus" = int(row.0.report.info.cpus), "number of CPUs online at the start";
        optional Real "allowed_cpus" = row.0.report.info.allowed_cpus, "number of CPUs that the command was allowed to use";
        required Long "wall_ns" = long(row.0.report.wall.0), "from the start to the end of the command or of the recording";
        optional Text "ended" = row.0.report.info.ended.as_deref().map(Cow::from),
            "`exited`, `interrupted`, `duration`, `failed: WHY`; NULL: the recorder was killed";
        optional Int "exit_code" = row.0.report.exit.and_then(exit_code), "exit code of the command; NULL if unknown or if a signal killed it";
        required Long "launches" = long(row.0.report.all.count), "number of launches";
        required Long "failed_execs" = long(row.0.report.all.failed_execs), "number of failed execs";
        required Long "forks_without_exec" = long(row.0.report.all.forks_without_exec), "number of forks without exec";
        optional Long "tax_ns" = span(row.0.report.all.tax), "start-up, summed over launches";
        optional Long "critical_tax_ns" = span(row.0.report.all.critical_tax), "start-up on the critical path";
        optional Real "replay_error" = row.0.report.replay_error, "error of the replay, as a share of the wall time";
        required Long "lost_events" = long(row.0.report.lost_events()), "events that were lost: counts and times are too low if not 0";
    }
}

pub(super) fn doctor<'a>() -> Vec<Column<DoctorRow<'a>>> {
    columns! { |row: DoctorRow<'a>|
        required Text "examination" = row.examination.id.into(), "identifies the examination: a hash of its findings, host and time";
        required Instant "examined" = row.examination.examined_unix_ns.div_euclid(1_000), "time of the examination, UTC";
        required Text "host" = row.examination.host.into(), "the machine: `uname -n`, or `--host`; as `runs.host`";
        required Text "kernel" = row.examination.kernel.into(), "`uname -r`";
        required Text "examiner" = row.examiner().into(), "the version of spawnscope that examined the machine";
        optional Long "fork_ns" = span(row.examination.diagnosis.launch.fork), "time of a fork on the machine";
        optional Long "exec_static_ns" = span(row.examination.diagnosis.launch.exec_static), "time of an exec of a static program on the machine";
        optional Long "exec_dynamic_ns" = span(row.examination.diagnosis.launch.exec_dynamic), "time of an exec of a dynamic program on the machine";
        optional Real "load_average" = row.examination.diagnosis.load.map(|load| load.average), "load average during the examination";
        optional Int "cpus" = row.examination.diagnosis.load.map(|load| int(load.cpus)), "number of CPUs";
        required Int "place" = row.position,
            "position in the examination, from 1: problems, then notes, then what could not be checked; the largest effect first";
        optional Text "severity" = Some(row.subject?[1].into()),
            "`problem`, `note`, or `unseen`: could not be checked; NULL: nothing was found at all";
        optional Text "check_name" = Some(row.subject?[0].into()), "the check (`doctor --list`)";
        optional Text "title" = Some(row.subject?[2].into()), "what was found, or what could not be checked and why";
        optional Text "evidence" = Some(row.finding?.evidence.join(". ").into()), "the evidence, as sentences";
        optional Long "effect_ns" = span(Some(row.finding?.effect?.span)), "time that it costs";
        optional Bool "effect_is_lower_bound" = Some(row.finding?.effect?.is_lower_bound), "whether it may cost more than that";
        optional Text "effect_of" = Some(row.finding?.effect?.affected.into()), "what takes that much longer, such as `each launch`";
        optional Text "effect_basis" = Some(row.finding?.effect?.basis.name().into()), "`measured` or `modelled`";
        optional Text "fix" = Some(row.finding?.fix.join("\n").into()), "what to do; commands begin with two spaces";
        optional Text "fix_cost" = Some(row.finding?.fix_cost.as_str().into()), "what the fix costs, or does not solve";
    }
}

fn long(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn int(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

fn span(time: Option<Nanos>) -> Option<i64> {
    time.map(|time| long(time.0))
}

/// Converts bytes to text. Invalid UTF-8 becomes U+FFFD.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn exit_code(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Code(code) => Some(code.into()),
        _ => None,
    }
}

fn exit_signal(outcome: Outcome) -> Option<i32> {
    match outcome {
        Outcome::Signal { number, .. } => Some(number.into()),
        _ => None,
    }
}

fn target_kind(target: &WaitTarget) -> &'static str {
    match target {
        WaitTarget::Launches { .. } => "launch",
        WaitTarget::Process(_) => "process",
        WaitTarget::Scanner(_) => "scanner",
    }
}

fn target_name(target: &WaitTarget) -> Option<&[u8]> {
    match target {
        WaitTarget::Launches { command, .. } => Some(command),
        WaitTarget::Process(name) | WaitTarget::Scanner(name) => name.as_deref(),
    }
}

fn label<'r>(report: &'r Report, key: &str) -> Option<Cow<'r, str>> {
    let label = report.info.labels.iter().find(|label| label.key == key)?;
    Some(Cow::Borrowed(&label.value))
}

fn command(contents: &Contents<'_>) -> Option<String> {
    let command = &contents.report.info.command;
    (contents.has_command_lines && !command.is_empty())
        .then(|| text::command_line(command.iter().map(Vec::as_slice), None))
}

/// Number of rows in a row group. Query engines skip whole groups by their statistics, and read
/// groups in parallel; larger groups compress a little better.
const ROWS_PER_GROUP: usize = 250_000;
/// The level of zstd: higher levels take several times as long and save only a few percent.
const ZSTD_LEVEL: i32 = 3;

/// Gets the value of a column from a row. The variants are the types of the value.
pub(super) enum Getter<R> {
    Long(fn(&R) -> Option<i64>),
    Int(fn(&R) -> Option<i32>),
    Real(fn(&R) -> Option<f64>),
    Bool(fn(&R) -> Option<bool>),
    Text(for<'r> fn(&'r R) -> Option<Cow<'r, str>>),
    /// Microseconds since 1970-01-01 UTC. Spark cannot read timestamps with a finer unit.
    Instant(fn(&R) -> Option<i64>),
}

/// A column of a table with rows of type `R`.
pub(super) struct Column<R> {
    pub(super) name: &'static str,
    pub(super) get: Getter<R>,
    pub(super) is_optional: bool,
    /// What the column contains, as in docs/guide/parquet.md.
    pub(super) description: &'static str,
}

impl<R> Column<R> {
    pub(super) fn optional(name: &'static str, get: Getter<R>, description: &'static str) -> Column<R> {
        Column { name, get, is_optional: true, description }
    }

    pub(super) fn required(name: &'static str, get: Getter<R>, description: &'static str) -> Column<R> {
        Column { is_optional: false, ..Column::optional(name, get, description) }
    }

    /// Returns the row for this column in the table of docs/guide/parquet.md.
    pub(super) fn documentation(&self) -> String {
        let kind = match self.get {
            Getter::Long(_) => "int64",
            Getter::Int(_) => "int32",
            Getter::Real(_) => "double",
            Getter::Bool(_) => "bool",
            Getter::Text(_) => "string",
            Getter::Instant(_) => "timestamp",
        };
        let null = if self.is_optional { "yes" } else { "" };
        format!("| `{}` | {kind} | {null} | {} |", self.name, self.description)
    }

    fn physical_type(&self) -> PhysicalType {
        match self.get {
            Getter::Long(_) | Getter::Instant(_) => PhysicalType::INT64,
            Getter::Int(_) => PhysicalType::INT32,
            Getter::Real(_) => PhysicalType::DOUBLE,
            Getter::Bool(_) => PhysicalType::BOOLEAN,
            Getter::Text(_) => PhysicalType::BYTE_ARRAY,
        }
    }

    fn schema(&self) -> Result<Type> {
        let logical = match self.get {
            Getter::Text(_) => Some(LogicalType::String),
            Getter::Instant(_) => Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            _ => None,
        };
        let repetition = if self.is_optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, self.physical_type())
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }

    fn write(&self, rows: &[R], writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self.get {
            Getter::Long(get) | Getter::Instant(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<Int64Type>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Int(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<Int32Type>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Real(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<DoubleType>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Bool(get) => {
                let (values, levels) = self.values(rows, get)?;
                let writer = writer.typed::<BoolType>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
            Getter::Text(get) => {
                let mut sharing = TextSharing::default();
                let (values, levels) = self.values(rows, |row| get(row).map(|text| sharing.share(text)))?;
                let writer = writer.typed::<ByteArrayType>();
                writer.write_batch(&values, levels.as_deref(), None)
            }
        }?;
        Ok(())
    }

    /// Returns the known values and, for an optional column, Parquet's definition levels: 1 for
    /// each row that has a value, else 0.
    fn values<T>(&self, rows: &[R], mut get: impl FnMut(&R) -> Option<T>) -> Result<(Vec<T>, Option<Vec<i16>>)> {
        let mut values = Vec::with_capacity(rows.len());
        if !self.is_optional {
            values.extend(rows.iter().filter_map(&mut get));
            if values.len() < rows.len() {
                return Err(ParquetError::General(format!(
                    "the required column {} has no value in some row",
                    self.name
                )));
            }
            return Ok((values, None));
        }
        let mut levels = Vec::with_capacity(rows.len());
        for row in rows {
            let value = get(row);
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        Ok((values, Some(levels)))
    }
}

/// Shares the bytes of a text between adjacent rows: many have the same one.
#[derive(Default)]
struct TextSharing {
    last: Option<ByteArray>,
}

impl TextSharing {
    fn share(&mut self, text: Cow<'_, str>) -> ByteArray {
        let last = self.last.take().filter(|last| last.data() == text.as_bytes());
        let bytes = last.unwrap_or_else(|| ByteArray::from(text.into_owned().into_bytes()));
        self.last.insert(bytes).clone()
    }
}

pub(super) fn write_rows<R, W: Write + Send>(out: W, table: Table, columns: &[Column<R>], rows: &[R]) -> Result<()> {
    let fields: Result<Vec<_>> = columns.iter().map(|column| Ok(Arc::new(column.schema()?))).collect();
    let schema = Type::group_type_builder(table.name()).with_fields(fields?).build()?;
    let properties = properties(table, columns)?;
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for group in rows.chunks(ROWS_PER_GROUP) {
        let mut written = writer.next_row_group()?;
        for column in columns {
            let next = written.next_column()?;
            let mut next = next.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
            column.write(group, &mut next)?;
            next.close()?;
        }
        written.close()?;
    }
    writer.close().map(drop)
}

/// Returns the properties of the file. Times differ in each row, so numbers are stored as
/// differences; texts repeat, so they are stored in a dictionary.
fn properties<R>(table: Table, columns: &[Column<R>]) -> Result<WriterProperties> {
    let metadata = [
        ("spawnscope.dataset_version", DATASET_VERSION.to_string()),
        ("spawnscope.table", table.name().to_owned()),
        ("spawnscope.version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec();
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("spawnscope version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(metadata));
    for column in columns {
        if matches!(column.get, Getter::Long(_) | Getter::Int(_) | Getter::Instant(_)) {
            let path = ColumnPath::from(column.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}
