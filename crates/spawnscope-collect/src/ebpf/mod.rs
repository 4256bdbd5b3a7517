//! The eBPF collector: programs on BTF tracepoints (`*.h`, `spawnscope.bpf.c`), their loading
//! (`load`), the format of their records (`wire`) and its decoding (`decode`, `stacks`), the
//! addresses of kernel functions (`symbols`), the executables that are interpreters
//! (`interpreters`), the sampling clock (`samples`), and what the programs cost (`costs`). This
//! file attaches the programs, and passes on what they report.

mod costs;
mod decode;
mod interpreters;
mod last;
mod load;
mod parts;
mod peers;
mod per_cpu;
mod refusal;
mod rings;
mod samples;
mod seeds;
mod skipped;
mod stacks;
mod symbols;

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::thread;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};
use zerocopy::IntoBytes;

use self::costs::Costs;
#[cfg(fuzzing)]
use self::decode::Chains;
use self::interpreters::Interpreters;
use self::load::LoadedObject;
use self::peers::Peers;
use self::per_cpu::PerCpuOffsets;
use self::rings::Rings;
use super::callers::Layout;
use super::stacks::{MappingSource, Unwinder};
use super::{CollectError, Collector, Follow, ROOT, Refusal, Settings};
use crate::wire::*;
use spawnscope_data::event::{Constant, Event, Loss, Missing};

/// Names of lost events, by kind of record.
const LOSSES: [(u32, &str); 22] = [
    (KIND_LAUNCH, "launch"),
    (KIND_THREAD, "thread"),
    (KIND_ADOPTED, "existing process"),
    (KIND_EXEC_FAILED, "failed exec"),
    (KIND_EXECUTED, "exec"),
    (KIND_LOADED, "load end"),
    (KIND_EXITED, "exit"),
    (KIND_GONE, "end"),
    (KIND_REAPED, "reap"),
    (KIND_SLICE, "slice"),
    (KIND_LAST_SEEN, "last state of a thread"),
    (KIND_UNFOLLOWED, "process not followed"),
    (KIND_FILE_NAMED, "path of a file waited for"),
    (KIND_PEER_NAMED, "address of a peer waited for"),
    (KIND_NEW_EXECUTABLE, "executable"),
    (KIND_SCRIPT_CALLED, "script line"),
    (KIND_PYTHON_CALLED, "Python call chain"),
    (KIND_MAPPING, "mapping of a process"),
    (KIND_STACK, "stack"),
    (KIND_SAMPLE, "sample"),
    (KIND_IMAGE, "mappings of a sampled process"),
    (KIND_SKIPPED, "event whose program the kernel skipped"),
];

/// Follows processes by means of BPF programs.
pub struct EbpfCollector {
    missing: Vec<Missing>,
    refusals: Vec<Refusal>,
    follow: Follow,
    links: Vec<Link>,
    /// The program that reports what threads are doing when the recording ends, if the kernel
    /// supports it.
    end_reporter: Option<Link>,
    end_report_failed: bool,
    rings: Rings,
    /// Turns stacks into call chains, if stacks were requested.
    unwinder: Option<Rc<RefCell<Unwinder>>>,
    peers: Peers,
    lost: MapHandle,
    costs: Costs,
    recording: MapHandle,
    interpreters: Option<Interpreters>,
    // Declared last, so that it is dropped after the fields that use its maps and programs.
    object: Object,
}

impl EbpfCollector {
    /// Loads and attaches the programs, and begins to follow what `follow` selects.
    ///
    /// # Errors
    /// If the user lacks permission, the kernel lacks a feature, or the process does not exist.
    pub fn attach(follow: Follow, settings: &Settings) -> Result<EbpfCollector, CollectError> {
        let buffer_bytes = settings.buffer_bytes.max(4096).next_power_of_two();
        let wire_settings = wire_settings(follow, settings, buffer_bytes)?;
        let request = load::Request {
            buffer_bytes,
            settings: &wire_settings,
            first_free_id: ROOT.0 + 1 + settings.with.len() as u64,
        };
        let (loaded, interpreters) = load_with_variables(&request, settings)?;
        let LoadedObject { object, mut missing, refusals } = loaded;
        let interpreters = settings.script_lines.then(|| Interpreters::new(&object, interpreters)).transpose()?;
        let unwinder = if settings.stacks || settings.sample.is_some() {
            Some(Rc::new(RefCell::new(start_unwinder(&mut missing)?)))
        } else {
            None
        };
        let rings = Rings::open(&object, unwinder.as_ref())?;
        rings.drained().events.extend(seeds::start_following(&object, follow, &settings.with)?);
        let (links, end_reporter) = attach_programs(&object, settings.sample, &mut missing)?;
        let recording = map_handle(&object, ".data.recording")?;
        set_recording(&recording, true)?;
        Ok(EbpfCollector {
            missing,
            refusals,
            follow,
            links,
            end_reporter,
            end_report_failed: false,
            rings,
            unwinder,
            peers: Peers::start().map_err(|error| thread_error(&error))?,
            lost: map_handle(&object, "lost")?,
            costs: Costs::new(map_handle(&object, costs::MAP)?),
            recording,
            interpreters,
            object,
        })
    }
}

impl Collector for EbpfCollector {
    fn name(&self) -> &'static str {
        "ebpf"
    }

    fn missing(&self) -> &[Missing] {
        &self.missing
    }

    fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.rings.readiness()
    }

    fn drain(&mut self, events: &mut Vec<Event>) -> Result<bool, CollectError> {
        let is_empty = self.rings.consume_batch()?;
        let mut drained = self.rings.drained();
        events.append(&mut drained.events);
        for executable in drained.executables.drain(..) {
            if let Some(interpreters) = &mut self.interpreters {
                interpreters.add(&executable)?;
            }
        }
        for peer in drained.peers.drain(..) {
            self.peers.ask(peer, events);
        }
        drop(drained);
        // Once the programs are detached, no further records follow.
        let is_end = is_empty && self.links.is_empty();
        self.peers.drain(events);
        if is_end {
            self.peers.finish(events);
        }
        if let Some(unwinder) = &self.unwinder {
            if is_end {
                unwinder.borrow_mut().finish();
            }
            unwinder.borrow_mut().drain(events);
        }
        Ok(!is_empty)
    }

    fn losses(&self) -> Result<Vec<Loss>, CollectError> {
        let mut losses = Vec::new();
        for (kind, name) in LOSSES {
            let counts = self
                .lost
                .lookup_percpu(&kind.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| failed("read the counts of lost events", &error))?;
            let events = counts
                .iter()
                .flatten()
                .map(|count| count.first_chunk().map_or(0, |count| u64::from_ne_bytes(*count)))
                .sum();
            losses.push(Loss { kind: name.to_owned(), events });
        }
        losses.push(Loss {
            kind: "program call that the kernel skipped".to_owned(),
            events: skipped::skipped_calls(&self.object),
        });
        losses.push(Loss {
            kind: "call chain".to_owned(),
            events: self.unwinder.as_ref().map_or(0, |unwinder| unwinder.borrow().lost_stacks()),
        });
        losses.push(Loss { kind: "final state of all threads".to_owned(), events: u64::from(self.end_report_failed) });
        losses.push(Loss { kind: "malformed record".to_owned(), events: self.rings.drained().malformed });
        Ok(losses)
    }

    fn as_followed(&self, act: &mut dyn FnMut()) -> Result<(), CollectError> {
        self.costs.calibrate(|| seeds::as_followed(&self.object, self.follow, act))
    }

    fn cost_beyond_calibration(&self) -> Vec<(Constant, f64)> {
        self.costs.surplus()
    }

    fn detach(&mut self) {
        // If this fails, detaching still stops the programs, but not all at the same moment.
        let _ = set_recording(&self.recording, false);
        if let Some(link) = self.end_reporter.take() {
            // Make room for the records of all threads. If reading fails here, `drain` reports the
            // error.
            while self.rings.consume_batch().is_ok_and(|is_empty| !is_empty) {}
            self.end_report_failed = last::report_threads(&link).is_err();
        }
        self.links.clear();
    }
}

/// Loads the programs and sets the variables that depend on the kernel's symbols. Also returns the
/// executables that are likely interpreters. Each of these steps takes tens of milliseconds.
fn load_with_variables(
    request: &load::Request<'_>,
    settings: &Settings,
) -> Result<(LoadedObject, Vec<(WireExecutable, Layout)>), CollectError> {
    let (mut loaded, scanner_code, per_cpu_offsets, interpreters) = thread::scope(|scope| {
        let scanner_code = thread::Builder::new().spawn_scoped(scope, symbols::scanner_code);
        let per_cpu_offsets = thread::Builder::new().spawn_scoped(scope, PerCpuOffsets::find);
        let interpreters = thread::Builder::new().spawn_scoped(scope, || interpreters::likely_interpreters(settings));
        let loaded = load::load(request)?;
        let scanner_code = scanner_code.map_err(|error| thread_error(&error))?;
        let per_cpu_offsets = per_cpu_offsets.map_err(|error| thread_error(&error))?;
        let interpreters = interpreters.map_err(|error| thread_error(&error))?;
        Ok((loaded, scanner_code.join(), per_cpu_offsets.join(), interpreters.join()))
    })?;
    let LoadedObject { object, missing, .. } = &mut loaded;
    match scanner_code.ok().flatten() {
        Some(code) => set_variable(object, ".data.scanner", code.as_bytes())?,
        None => missing.push(missing_scanner_code()),
    }
    let per_cpu_offsets = per_cpu_offsets.unwrap_or_default();
    let by_symbol = object.progs().any(|program| program.name() == "on_waking" && program.autoload());
    missing.extend(per_cpu_offsets.missing(by_symbol));
    if let Some(per_cpu_offsets) = per_cpu_offsets.offsets {
        set_variable(object, ".data.offsets", per_cpu_offsets.as_bytes())?;
    }
    Ok((loaded, interpreters.unwrap_or_default()))
}

fn start_unwinder(missing: &mut Vec<Missing>) -> Result<Unwinder, CollectError> {
    let source = load::mapping_source();
    if source == MappingSource::Recorder {
        missing.push(load::missing_mappings());
    }
    Unwinder::start(source).map_err(|error| thread_error(&error))
}

/// Attaches the programs in the order that they have in the object, because some programs rely on
/// this order.
fn attach_programs(
    object: &Object,
    sample: Option<u32>,
    missing: &mut Vec<Missing>,
) -> Result<(Vec<Link>, Option<Link>), CollectError> {
    let (mut links, mut end_reporter) = (Vec::new(), None);
    for program in object.progs_mut().filter(|program| program.autoload()) {
        if program.name() == samples::PROGRAM {
            match samples::attach(&program, sample.unwrap_or(0)) {
                Ok(cpu_links) => links.extend(cpu_links),
                Err(unknown) => missing.push(unknown),
            }
            continue;
        }
        if program.name() == parts::SEEDER {
            continue;
        }
        if program.name() == last::PROGRAM {
            match last::attach(&program) {
                Ok(link) => end_reporter = Some(link),
                Err(unknown) => missing.push(unknown),
            }
            continue;
        }
        let link = program.attach();
        links.push(link.map_err(|error| CollectError::Unsupported(error.to_string()))?);
    }
    Ok((links, end_reporter))
}

fn failed(action: &'static str, error: &libbpf_rs::Error) -> CollectError {
    CollectError::Failed { action, detail: error.to_string() }
}

fn thread_error(error: &std::io::Error) -> CollectError {
    CollectError::Failed { action: "start a thread", detail: error.to_string() }
}

fn map<'object>(object: &'object Object, name: &str) -> Result<libbpf_rs::Map<'object>, CollectError> {
    object
        .maps()
        .find(|map| map.name() == name)
        .ok_or_else(|| CollectError::Unsupported(format!("the BPF object has no map {name}")))
}

/// Returns a handle to a map, which does not borrow the object.
fn map_handle(object: &Object, name: &str) -> Result<MapHandle, CollectError> {
    MapHandle::try_from(&map(object, name)?).map_err(|error| failed("open a BPF map", &error))
}

/// Sets a variable of the BPF programs.
fn set_variable(object: &Object, name: &str, value: &[u8]) -> Result<(), CollectError> {
    map(object, name)?
        .update(&0u32.to_ne_bytes(), value, MapFlags::ANY)
        .map_err(|error| failed("set a variable of the BPF programs", &error))
}

fn missing_scanner_code() -> Missing {
    Missing {
        what: "the addresses in /proc/kallsyms".to_owned(),
        effect: "which waits in exec and open were for a permission scanner".to_owned(),
    }
}

/// Switches all programs on or off at the same moment.
fn set_recording(map: &MapHandle, on: bool) -> Result<(), CollectError> {
    map.update(&0u32.to_ne_bytes(), &u32::from(on).to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| failed("switch the BPF programs", &error))
}

fn wire_settings(follow: Follow, settings: &Settings, buffer_bytes: u32) -> Result<WireSettings, CollectError> {
    Ok(WireSettings {
        pid_namespace: namespace("/proc/self/ns/pid")?,
        follow_all: u32::from(matches!(follow, Follow::System(_))),
        follow_old_threads: u32::from(matches!(follow, Follow::Process(_)) || !settings.with.is_empty()),
        stacks: u32::from(settings.stacks),
        emit_mappings: u32::from(load::may_walk_mappings()),
        mount_namespace: namespace("/proc/self/ns/mnt")?,
        script_lines: u32::from(settings.script_lines),
        node_lines: u32::from(settings.node_lines),
        reserved: 0,
        cpus: possible_cpus()?,
        page_bytes: rustix::param::page_size() as u32,
        preemptible: u32::from(load::can_be_preempted()),
        wakeup_bytes: u64::from(buffer_bytes / 4),
        sample_period: settings.sample.map_or(0, |frequency| 1_000_000_000 / u64::from(frequency.max(1))),
    })
}

fn possible_cpus() -> Result<u32, CollectError> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(|error| failed("count the CPUs", &error))?;
    Ok(cpus as u32)
}

/// Returns the inode number of one of the recorder's namespaces.
fn namespace(file: &'static str) -> Result<u32, CollectError> {
    let found = std::fs::metadata(file).map_err(|error| CollectError::Failed {
        action: "identify the recorder's namespaces",
        detail: format!("{file}: {error}"),
    })?;
    Ok(found.ino() as u32)
}

/// Decodes a record as the reader of the ring buffer does, for `fuzz/`.
#[cfg(fuzzing)]
pub(super) fn fuzz_decoder(record: &[u8]) {
    let _ = decode::decode(record, 4096, &mut Chains::default(), &mut Vec::new());
    let _ = stacks::decode(record);
    let _ = decode::new_executable(record);
    let _ = peers::Peer::decode(record).map(|peer| peer.named_event());
}
