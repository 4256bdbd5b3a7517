//! Handles the execs of followed processes, and what the mappings of the new programs show.

use crate::perf::kernel::File;
use spawnscope_data::event::{EventKind, Executed, Loaded, Nanos, Pid, TaskId};

use super::cpu_time::CpuTime;
use super::followed::{FollowedProcesses, Thread};
use super::image::{Image, Step};

impl FollowedProcesses {
    /// Handles the exec of a process. If the process had several threads, only the thread that called exec remains, as its first thread.
    pub(super) fn handle_exec(&mut self, at: Nanos, pid: Pid, tid: Pid, image: Image) {
        self.report_image(at, pid, Loaded::by_loader(None));
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        process.threads = 1;
        process.image = Some(image);
        let launch = process.launch;
        let others: Vec<(Pid, Thread)> =
            self.threads.extract_if(|other, thread| thread.process == pid && *other != tid).collect();
        for (_, other) in &others {
            let gone = EventKind::Gone { zombie: None, auto_reaped: false, cpu: None };
            self.report(at, launch, other.task, gone);
        }
        // Before it wrote the record, the kernel gave the process's id to the thread that called exec.
        self.threads.entry(pid).or_insert_with(|| Thread {
            process: pid,
            launch,
            task: TaskId(launch.0),
            cpu: others.first().map_or_else(CpuTime::lost, |(_, other)| other.cpu),
        });
    }

    pub(super) fn handle_mapping(
        &mut self,
        at: Nanos,
        pid: Pid,
        tid: Pid,
        (file, protection, name): (File, u32, &[u8]),
    ) {
        let Some(image) = self.processes.get_mut(&pid).and_then(|process| process.image.as_mut()) else {
            return;
        };
        let cpu = self.threads.get(&tid).and_then(|thread| thread.cpu.used_until(at));
        match image.handle_mapping(file, protection, name) {
            Step::Nothing => {}
            Step::Returns { has_loader } => {
                image.returned = Some((at, cpu));
                self.report_exec(at, pid);
                if !has_loader {
                    self.report_image(at, pid, Loaded::default());
                }
            }
            Step::Loaded => {
                self.report_image(at, pid, Loaded::by_loader(cpu.map(|cpu| (at, cpu))));
            }
        }
    }

    /// Reports the exec of a process, unless it was reported before.
    pub(super) fn report_exec(&mut self, at: Nanos, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let launch = process.launch;
        let Some(image) = process.image.as_mut().filter(|image| !image.is_reported) else {
            return;
        };
        image.is_reported = true;
        let (path, interpreter) = (image.path(), image.interpreter());
        let details = image.details.take();
        self.counts.programs += 1;
        self.counts.without_arguments += u64::from(details.is_none());
        let (argv, argv_bytes, cwd, variables) = match details {
            Some(details) => (details.argv, details.argv_bytes, details.cwd, details.variables),
            // Unknown arguments are stored as truncated before their first byte. Every program has at least one, possibly empty, argument.
            None => (Vec::new(), 1, None, Vec::new()),
        };
        let executed = Executed {
            first_run: process.first_run,
            path,
            interpreter,
            argv,
            argv_bytes,
            cwd,
            variables,
            ..Executed::default()
        };
        self.report(at, launch, TaskId(launch.0), EventKind::Executed(executed));
    }

    /// Reports what is known about the program of a process, and removes it. `loaded` says what is known about its loader.
    pub(super) fn report_image(&mut self, at: Nanos, pid: Pid, loaded: Loaded) {
        self.report_exec(at, pid);
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let launch = process.launch;
        let returned = process.image.take().and_then(|image| image.returned);
        if let Some((returned, Some(return_cpu))) = returned {
            let loaded = Loaded { returned, return_cpu: Some(return_cpu), ..loaded };
            self.report(at, launch, TaskId(launch.0), EventKind::Loaded(loaded));
        }
    }
}
