//! Decodes rows from columns in the order of `tables`, with one function per table.

use spawnscope_data::event::{
    Calibration, Constant, Language, LeftCpu, Loss, Mechanism, Missing, ObjectKind, Pid, TaskId, syscalls,
};

use super::super::checksum::TableSum;
use super::super::fields::{BadValue, Fields, FromColumn, Index};
use super::super::limits::MOST_CPUS;
use spawnscope_data::contradictions::Contradictions;
use spawnscope_data::rows::{
    ExecRow, FailedExecRow, FrameRow, Info, LaunchRow, ObjectRow, Origin, SampleRow, Scope, SliceRow, StackId,
    StackRow, TextId, ThreadRow, WakerRow,
};

pub(super) fn info(fields: &mut Fields) -> Result<Info, BadValue> {
    fields.skip();
    let (version, collector) = (fields.word()?, fields.word()?);
    let scope = fields.word_of(&Scope::ALL, Scope::name)?;
    let command = arguments(fields.bytes()?);
    // The working directory and the kernel.
    fields.skip();
    fields.skip();
    let arch = fields.word()?;
    fields.skip();
    let cpus = fields.count_up_to(MOST_CPUS)?;
    let started_unix_ns = fields.required()?;
    fields.skip();
    Ok(Info {
        version,
        collector,
        scope,
        command,
        cpus,
        arch,
        started_unix_ns,
        root: fields.optional()?,
        last: fields.required()?,
        wall: fields.optional()?,
        is_live: false,
        ended: fields.optional_word()?,
        missing: Vec::new(),
        lost: Vec::new(),
        contradictions: Contradictions::default(),
    })
}

pub(super) fn checksum(fields: &mut Fields) -> Result<(String, TableSum), BadValue> {
    let name = fields.word()?;
    let [rows, sum] = [fields.required::<i64>()?, fields.required::<i64>()?].map(i64::cast_unsigned);
    Ok((name, TableSum { rows, sum }))
}

pub(super) fn missing(fields: &mut Fields) -> Result<Missing, BadValue> {
    Ok(Missing {
        what: fields.word()?,
        effect: fields.word()?,
    })
}

pub(super) fn calibration(fields: &mut Fields) -> Result<Calibration, BadValue> {
    Ok(Calibration {
        what: fields.word_of(&Constant::ALL, Constant::name)?,
        ns: fields.real()?,
        low_ns: fields.optional_real()?,
        high_ns: fields.optional_real()?,
    })
}

pub(super) fn loss(fields: &mut Fields) -> Result<Loss, BadValue> {
    Ok(Loss {
        kind: fields.word()?,
        events: fields.required()?,
    })
}

pub(super) fn launch(fields: &mut Fields) -> Result<LaunchRow, BadValue> {
    Ok(LaunchRow {
        id: fields.required()?,
        parent: fields.optional()?,
        parent_task: fields.optional()?,
        pid: fields.optional()?,
        origin: fields.one_of(&Origin::ALL)?,
        mechanism: fields.optional_one_of(&Mechanism::ALL)?,
        create: fields.optional()?,
        created: fields.optional()?,
        first_run: fields.optional()?,
        exit: fields.optional()?,
        zombie: fields.optional()?,
        reaped: fields.optional()?,
        wait_status: fields.optional()?,
        parent_rss_bytes: fields.optional()?,
        parent_table_bytes: fields.optional()?,
        exit_cpu: fields.optional()?,
        cpu: fields.optional()?,
        name: fields.optional()?,
        setup_closes: fields.optional()?,
        setup_close_span: fields.optional()?,
        prepare: fields.optional()?,
        parent_tidied: fields.optional()?,
        parent_faults: fields.optional()?,
        script_stack: fields.optional()?,
        native_stack: fields.optional()?,
    })
}

pub(super) fn exec(fields: &mut Fields) -> Result<ExecRow, BadValue> {
    Ok(ExecRow {
        launch: fields.required()?,
        enter: fields.optional()?,
        returned: fields.optional()?,
        load_end: fields.optional()?,
        has_loader: fields.optional()?,
        enter_cpu: fields.optional()?,
        return_cpu: fields.optional()?,
        load_cpu: fields.optional()?,
        path: fields.required()?,
        interpreter: fields.optional()?,
        argv: fields.required()?,
        argv_bytes: fields.required()?,
        cwd: fields.optional()?,
        load_opens: fields.optional()?,
        load_failed_opens: fields.optional()?,
        load_cache: fields.optional()?,
    })
}

pub(super) fn failed_exec(fields: &mut Fields) -> Result<FailedExecRow, BadValue> {
    Ok(FailedExecRow {
        launch: fields.required()?,
        enter: fields.required()?,
        returned: fields.required()?,
        path: fields.required()?,
        errno: fields.required()?,
    })
}

pub(super) fn thread(fields: &mut Fields) -> Result<ThreadRow, BadValue> {
    Ok(ThreadRow {
        task: fields.required()?,
        launch: fields.required()?,
        creator: fields.optional()?,
        tid: fields.required()?,
        created: fields.required()?,
        ended: fields.optional()?,
        cpu: fields.optional()?,
    })
}

pub(super) fn object(fields: &mut Fields) -> Result<ObjectRow, BadValue> {
    Ok(ObjectRow {
        kind: fields.one_of(&ObjectKind::ALL)?,
        device: fields.required()?,
        inode: fields.required::<i64>()?.cast_unsigned(),
        path: fields.optional()?,
    })
}

pub(super) fn frame(fields: &mut Fields) -> Result<FrameRow, BadValue> {
    Ok(FrameRow {
        language: fields.one_of(&Language::ALL)?,
        function: fields.optional()?,
        file: fields.optional()?,
        line: fields.optional()?,
        module: fields.optional()?,
        address: fields.optional::<i64>()?.map(i64::cast_unsigned),
        is_inlined: fields.required()?,
    })
}

pub(super) fn stack(fields: &mut Fields) -> Result<StackRow, BadValue> {
    let id: StackId = fields.required()?;
    Ok(StackRow {
        frame: fields.required()?,
        caller: fields.earlier(id)?,
        is_truncated: fields.required()?,
    })
}

pub(super) fn slice(fields: &mut Fields, numbers: &syscalls::Numbers) -> Result<SliceRow, BadValue> {
    Ok(SliceRow {
        task: fields.required()?,
        off: fields.required()?,
        on_span: fields.optional()?,
        off_span: fields.optional()?,
        wake_span: fields.optional()?,
        reason: fields.one_of(&LeftCpu::ALL)?,
        syscall: fields.optional()?.and_then(|number| numbers.x86_64(number)),
        argument: fields.optional::<i64>()?.map(i64::cast_unsigned),
        waker: waker(fields)?,
        object: fields.optional()?,
        calls: fields.optional()?.unwrap_or(0),
        is_waker_certain: fields.optional()?.unwrap_or(true),
    })
}

pub(super) fn sample(fields: &mut Fields) -> Result<SampleRow, BadValue> {
    Ok(SampleRow {
        task: fields.required()?,
        at: fields.required()?,
        span: fields.required()?,
        is_waiting: fields.required()?,
        stack: fields.required()?,
    })
}

fn waker(fields: &mut Fields) -> Result<Option<WakerRow>, BadValue> {
    let by: Option<Waking> = fields.optional()?;
    let name: Option<TextId> = fields.optional()?;
    Ok(match by {
        Some(Waking::Interrupt) => Some(WakerRow::Interrupt),
        Some(Waking::Task(task)) => Some(WakerRow::Task(task)),
        Some(Waking::Other(pid)) => Some(WakerRow::Other(pid, name)),
        None => name.map(|name| WakerRow::Other(Pid(0), Some(name))),
    })
}

/// The value of the column `waker`, without the name, which is in the next column.
enum Waking {
    Interrupt,
    Task(TaskId),
    Other(Pid),
}

impl FromColumn for Waking {
    fn from_column(value: i64, index: &Index) -> Option<Self> {
        match value {
            0 => Some(Waking::Interrupt),
            1.. => TaskId::from_column(value, index).map(Waking::Task),
            _ => Pid::from_column(value.checked_neg()?, index).map(Waking::Other),
        }
    }
}

/// Splits an argv whose arguments end with NUL.
fn arguments(argv: &[u8]) -> Vec<Vec<u8>> {
    match argv.strip_suffix(b"\0") {
        Some(argv) => argv.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
        None => Vec::new(),
    }
}
