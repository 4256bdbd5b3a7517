//! Builds recordings by hand. A launch is defined by the durations of its phases; the instants of
//! the rows follow from these.

use spawnscope_data::event::{Language, LaunchId, Mechanism, Nanos, Pid, TaskId};
use spawnscope_data::rows::{
    ExecRow, FailedExecRow, FrameId, FrameRow, Info, LaunchRow, Origin, Recording, StackId, StackRow, StopRow, TextId,
};

/// The durations of a launch's phases, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spans {
    pub(crate) create: u64,
    pub(crate) queue: u64,
    pub(crate) setup: u64,
    pub(crate) exec: u64,
    pub(crate) load: u64,
    pub(crate) run: u64,
    pub(crate) teardown: u64,
    pub(crate) reap: u64,
}

impl Spans {
    /// The phases of a small dynamic program on an idle machine.
    pub(crate) const USUAL: Spans = Spans {
        create: 120_000,
        queue: 20_000,
        setup: 40_000,
        exec: 300_000,
        load: 400_000,
        run: 200_000,
        teardown: 60_000,
        reap: 10_000,
    };

    pub(crate) const fn total(&self) -> u64 {
        self.create + self.queue + self.setup + self.exec + self.load + self.run + self.teardown + self.reap
    }
}

/// A recording under construction. Its command is launch 1, released at zero.
pub(crate) struct Builder {
    pub(crate) recording: Recording,
}

pub(crate) const ROOT: LaunchId = LaunchId(1);

impl Builder {
    /// Starts a recording of a command that executes `path` once and runs for `wall_ns`.
    pub(crate) fn command(path: &str, argv: &[&str], wall_ns: u64) -> Builder {
        let info = Info {
            version: "0.1.0".to_owned(),
            collector: "ebpf".to_owned(),
            command: argv.iter().map(|argument| argument.as_bytes().to_vec()).collect(),
            cpus: 2,
            arch: "x86_64".to_owned(),
            started_unix_ns: 1_700_000_000_000_000_000,
            root: Some(ROOT),
            last_event: Nanos(wall_ns),
            wall: Some(Nanos(wall_ns)),
            ended: Some("exited".to_owned()),
            ..Info::default()
        };
        let recording = Recording { info, ..Recording::default() };
        let mut builder = Builder { recording };
        builder.recording.launches.push(LaunchRow {
            created: Some(Nanos(0)),
            exit: Some(Nanos(wall_ns - 50_000)),
            zombie: Some(Nanos(wall_ns)),
            wait_status: Some(0),
            cpu: Some(Nanos(wall_ns / 10)),
            ..blank(ROOT, None, Origin::Command)
        });
        let bytes: Vec<&[u8]> = argv.iter().map(|argument| argument.as_bytes()).collect();
        builder.exec_at(ROOT, path.as_bytes(), &bytes, [20_000, 320_000, 720_000]);
        builder
    }

    /// Adds a launch by `parent` that starts at `start_ns`. Without a program, it never execs.
    pub(crate) fn launch(
        &mut self,
        parent: LaunchId,
        start_ns: u64,
        spans: &Spans,
        program: Option<(&str, &[&str])>,
    ) -> LaunchId {
        let created = start_ns + spans.create;
        let first_run = created + spans.queue;
        let entered = first_run + spans.setup;
        let returned = entered + spans.exec;
        let loaded = returned + spans.load;
        let exit = if program.is_some() { loaded } else { first_run } + spans.run;
        let zombie = exit + spans.teardown;
        let id = LaunchId(self.recording.launches.len() as u64 + 1);
        self.recording.launches.push(LaunchRow {
            mechanism: Some(Mechanism::Fork),
            create: Some(Nanos(start_ns)),
            created: Some(Nanos(created)),
            first_run: Some(Nanos(first_run)),
            exit: Some(Nanos(exit)),
            zombie: Some(Nanos(zombie)),
            reaped: Some(Nanos(zombie + spans.reap)),
            wait_status: Some(0),
            exit_cpu: Some(Nanos(exit - first_run)),
            cpu: Some(Nanos(zombie - first_run)),
            setup_closes: program.map(|_| 3),
            setup_close_span: program.map(|_| Nanos(900)),
            ..blank(id, Some(parent), Origin::Launched)
        });
        if let Some((path, argv)) = program {
            let bytes: Vec<&[u8]> = argv.iter().map(|argument| argument.as_bytes()).collect();
            self.exec_at(id, path.as_bytes(), &bytes, [entered, returned, loaded]);
            let exec = self.recording.execs.last_mut().unwrap();
            exec.enter_cpu = Some(Nanos(spans.setup));
            exec.return_cpu = Some(Nanos(spans.setup + spans.exec));
            exec.load_cpu = Some(Nanos(spans.setup + spans.exec + spans.load));
        }
        id
    }

    /// Adds a successful exec of a dynamic program. `at_ns`: when the exec was entered, when it
    /// returned, and when the program was loaded.
    pub(crate) fn exec_at(&mut self, launch: LaunchId, path: &[u8], argv: &[&[u8]], at_ns: [u64; 3]) {
        let joined: Vec<u8> = argv.iter().flat_map(|argument| [argument, b"\0".as_slice()].concat()).collect();
        let cwd = self.text(b"/home/user");
        let row = ExecRow {
            launch,
            enter: Some(Nanos(at_ns[0])),
            returned: Some(Nanos(at_ns[1])),
            load_end: Some(Nanos(at_ns[2])),
            has_loader: Some(true),
            load_opens: Some(2),
            load_failed_opens: Some(1),
            load_cache: Some(true),
            path: self.text(path),
            argv_bytes: joined.len() as u64,
            argv: self.text(&joined),
            cwd: Some(cwd),
            ..ExecRow::default()
        };
        self.recording.execs.push(row);
    }

    /// Adds a failed exec of 1,000 ns.
    pub(crate) fn failed_exec_at(&mut self, launch: LaunchId, path: &str, errno: i32, enter_ns: u64) {
        let path = self.text(path.as_bytes());
        let row = FailedExecRow { launch, enter: Nanos(enter_ns), returned: Nanos(enter_ns + 1_000), path, errno };
        self.recording.failed_execs.push(row);
    }

    /// Adds times, from start to end, at which the collector stopped the first thread of a launch.
    pub(crate) fn stops(&mut self, launch: LaunchId, stops: &[[u64; 2]]) {
        let rows = stops.iter().map(|[since, until]| StopRow {
            launch,
            task: TaskId(launch.0),
            at: Nanos(*since),
            span: Nanos(until - since),
        });
        self.recording.stops.extend(rows);
    }

    /// Sets the call chain of a launch, from the innermost frame outwards.
    pub(crate) fn set_call_chain(&mut self, launch: LaunchId, chain: &[FrameRow]) -> StackId {
        let mut caller = None;
        for frame in chain.iter().rev() {
            self.recording.frames.push(*frame);
            self.recording.stacks.push(StackRow {
                frame: FrameId(self.recording.frames.len() as u32 - 1),
                caller,
                is_truncated: false,
            });
            caller = Some(StackId::from_index(self.recording.stacks.len() as u32 - 1));
        }
        let row = self.row(launch);
        if chain[0].language.is_script() {
            row.script_stack = caller;
        } else {
            row.native_stack = caller;
        }
        caller.unwrap()
    }

    /// Returns a frame at a line of a script, and adds its strings. `function` is empty outside of
    /// all functions.
    pub(crate) fn line(&mut self, language: Language, file: &str, line: u32, function: &str) -> FrameRow {
        FrameRow {
            language,
            function: (!function.is_empty()).then(|| self.text(function.as_bytes())),
            file: Some(self.text(file.as_bytes())),
            line: Some(line),
            ..FrameRow::default()
        }
    }

    /// Returns a frame in machine code, and adds its strings. If `function` is empty, only the
    /// address is known.
    pub(crate) fn code(&mut self, module: &str, function: &str, address: u64) -> FrameRow {
        FrameRow {
            language: Language::Native,
            function: (!function.is_empty()).then(|| self.text(function.as_bytes())),
            module: Some(self.text(module.as_bytes())),
            address: Some(address),
            ..FrameRow::default()
        }
    }

    pub(crate) fn row(&mut self, id: LaunchId) -> &mut LaunchRow {
        self.recording.launches.iter_mut().find(|row| row.id == id).unwrap()
    }

    /// Marks a launch as still running at the end.
    pub(crate) fn leave_running(&mut self, id: LaunchId) {
        let row = self.row(id);
        *row = LaunchRow {
            exit: None,
            zombie: None,
            reaped: None,
            wait_status: None,
            exit_cpu: None,
            cpu: None,
            ..row.clone()
        };
    }

    pub(crate) fn text(&mut self, bytes: &[u8]) -> TextId {
        self.recording.texts.push(bytes)
    }
}

/// Returns a row of which only the id, the parent, the pid and the origin are set.
pub(crate) fn blank(id: LaunchId, parent: Option<LaunchId>, origin: Origin) -> LaunchRow {
    LaunchRow { id, parent, pid: Some(Pid(4000 + i32::try_from(id.0).unwrap())), origin, ..LaunchRow::default() }
}
