//! Loads the BPF object. A program that this kernel refuses is replaced by its fallback or omitted
//! (`parts`), and what is unknown as a result is reported. The collector fails only if an essential
//! program is refused.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Func;
use libbpf_rs::{ErrorKind, Object, ObjectBuilder, OpenObject};
use zerocopy::IntoBytes;

use super::parts;
use super::refusal;
use super::skipped;
use crate::stacks::MappingSource;
use crate::wire::{WireSettings, WireShared};
use crate::{CollectError, Refusal};
use spawnscope_data::event::Missing;

/// Gives embedded data the alignment that ELF parsers require.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
/// The build for Linux 5.13 and later.
static TASK_STORAGE_BUILD: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/spawnscope.bpf.o")));
/// The build for kernels without task storage for tracing programs; `tasks.h` explains the
/// differences.
static HASH_BUILD: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/spawnscope_hash.bpf.o")));

/// For tests: comma-separated names of programs and kernel features that are treated as refused by
/// the kernel.
const REFUSE_VARIABLE: &str = "SPAWNSCOPE_EBPF_REFUSE";
/// Kernel feature: BPF programs can walk a process's mappings.
const WALK_MAPPINGS: &str = "bpf_iter_task_vma_new";
/// Kernel feature: tracing programs can use task storage.
const STORAGE_FEATURE: &str = "task_storage";
/// Kernel feature: tracing programs run with preemption off.
const PREEMPTION_OFF: &str = "preemption_off";

/// Returns the names that the test variable lists as refused.
fn simulated_refusals() -> Vec<String> {
    let names = std::env::var(REFUSE_VARIABLE).unwrap_or_default();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Whether BPF programs may try to walk a process's mappings.
pub(super) fn may_walk_mappings() -> bool {
    may_use(WALK_MAPPINGS)
}

/// Returns who reads the mappings of processes: the kernel, if it has the function for it, or else
/// the recorder.
pub(super) fn mapping_source() -> MappingSource {
    if may_walk_mappings()
        && Btf::from_vmlinux().is_ok_and(|types| types.type_by_name::<Func<'_>>(WALK_MAPPINGS).is_some())
    {
        MappingSource::Kernel
    } else {
        MappingSource::Recorder
    }
}

/// Returns what is unknown if the recorder reads the mappings.
pub(super) fn missing_mappings() -> Missing {
    Missing {
        what: format!("{WALK_MAPPINGS} (Linux 6.7)"),
        effect: "call chains in processes that end before their mappings are read".to_owned(),
    }
}

/// Whether a thread can lose the CPU while a BPF program runs. Up to Linux 6.19, tracepoint
/// programs run with preemption off.
pub(super) fn can_be_preempted() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let major = release.split('.').next().and_then(|major| major.parse::<u32>().ok());
    !may_use(PREEMPTION_OFF) || major.is_none_or(|major| major >= 7)
}

/// Whether a kernel feature may be used, that is, the test variable does not list it as refused.
pub(super) fn may_use(name: &str) -> bool {
    !simulated_refusals().iter().any(|each| each == name)
}

/// A loaded object that is not yet attached.
pub(super) struct LoadedObject {
    pub(super) object: Object,
    pub(super) missing: Vec<Missing>,
    pub(super) refusals: Vec<Refusal>,
}

pub(super) struct Request<'settings> {
    pub(super) buffer_bytes: u32,
    pub(super) settings: &'settings WireSettings,
    pub(super) first_free_id: u64,
}

/// Loads all programs that this kernel accepts.
pub(super) fn load(request: &Request<'_>) -> Result<LoadedObject, CollectError> {
    refusal::listen();
    if !may_use(STORAGE_FEATURE) {
        return request.load_build(HASH_BUILD);
    }
    request.load_build(TASK_STORAGE_BUILD).or_else(|error| match error {
        CollectError::NotPermitted { .. } => Err(error),
        // The kernel supports task storage, so the error of the better build is the relevant one.
        CollectError::Refused(_) => request.load_build(HASH_BUILD).map_err(|_| error),
        _ => request.load_build(HASH_BUILD),
    })
}

impl Request<'_> {
    /// Loads a build. Retries until the kernel accepts the programs: each refusal names one
    /// program, which the next attempt omits.
    fn load_build(&self, build: &Aligned<[u8]>) -> Result<LoadedObject, CollectError> {
        let mut refusals: Vec<Refusal> = simulated_refusals().iter().map(|name| Refusal::simulated(name)).collect();
        loop {
            let chosen = parts::choose(&refusals)?;
            refusal::take_messages();
            let mut open = ObjectBuilder::default().open_memory(&build.0).map_err(|error| unsupported(&error))?;
            self.configure(&mut open, &chosen, &refusals)?;
            let error = match open.load() {
                Ok(object) => {
                    return Ok(LoadedObject { object, missing: parts::missing(&chosen, self.settings), refusals });
                }
                Err(error) => error,
            };
            let messages = refusal::take_messages();
            if is_not_permitted(&error, &messages) {
                return Err(not_permitted());
            }
            match Refusal::from_messages(&messages, &error) {
                Some(new) if !refusals.iter().any(|refusal| refusal.program == new.program) => refusals.push(new),
                _ => return Err(unsupported_from_messages(&error, &messages)),
            }
        }
    }

    /// Whether to load a program: a chosen program, or its spare or check. The spare and the check
    /// are loaded together or not at all, because with the spare alone, skipped events would not be
    /// counted.
    fn should_load(&self, program: &str, chosen: &[Option<&str>], refusals: &[Refusal]) -> bool {
        let main_program = skipped::main_program(program);
        let name = main_program.unwrap_or(program);
        chosen.contains(&Some(name))
            && parts::is_requested(name, self.settings)
            && (main_program.is_none() || self.settings.preemptible != 0)
            && refusals.iter().all(|refusal| {
                refusal.program != program
                    && (main_program.is_none() || skipped::main_program(&refusal.program) != main_program)
            })
    }

    fn configure(
        &self,
        open: &mut OpenObject,
        chosen: &[Option<&str>],
        refusals: &[Refusal],
    ) -> Result<(), CollectError> {
        for mut program in open.progs_mut() {
            let name = program.name().to_str();
            let wanted = name.is_some_and(|name| self.should_load(name, chosen, refusals));
            program.set_autoload(wanted);
        }
        let has_samples = self.settings.sample_period != 0;
        for mut map in open.maps_mut() {
            if map.name() == "events" || (map.name() == "stacks" && (self.settings.stacks != 0 || has_samples)) {
                map.set_max_entries(self.buffer_bytes).map_err(|error| unsupported(&error))?;
            } else if map.name() == "waits" || map.name() == "sample_scratches" {
                map.set_autocreate(has_samples).map_err(|error| unsupported(&error))?;
            } else if map.name() == "python_scratches" {
                map.set_max_entries(self.settings.cpus).map_err(|error| unsupported(&error))?;
            } else if map.name() == ".rodata.settings" {
                fill(map.initial_value_mut(), self.settings.as_bytes())?;
            } else if map.name() == ".data.shared" {
                let shared = WireShared {
                    last_id: self.first_free_id - 1,
                    arrival_offset: 0,
                    pid_level_plus_one: 0,
                    reserved: 0,
                };
                fill(map.initial_value_mut(), shared.as_bytes())?;
            }
        }
        Ok(())
    }
}

fn fill(target: Option<&mut [u8]>, value: &[u8]) -> Result<(), CollectError> {
    let target = target.and_then(|target| target.get_mut(..value.len()));
    target
        .map(|target| target.copy_from_slice(value))
        .ok_or_else(|| CollectError::Unsupported("the BPF object lacks its settings".to_owned()))
}

/// Whether the user may not load BPF programs. The verifier also returns EACCES, but in that case
/// its log contains the reason.
fn is_not_permitted(error: &libbpf_rs::Error, messages: &str) -> bool {
    error.kind() == ErrorKind::PermissionDenied && refusal::verifier_reason(messages).is_none()
}

fn unsupported(error: &libbpf_rs::Error) -> CollectError {
    unsupported_from_messages(error, &refusal::take_messages())
}

fn unsupported_from_messages(error: &libbpf_rs::Error, messages: &str) -> CollectError {
    if is_not_permitted(error, messages) {
        return not_permitted();
    }
    CollectError::Unsupported(refusal::last_message(messages).unwrap_or_else(|| error.to_string()))
}

fn not_permitted() -> CollectError {
    let program = std::env::current_exe().map(|path| path.display().to_string());
    CollectError::NotPermitted { program: program.unwrap_or_else(|_| "spawnscope".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eacces_with_a_verifier_log_is_a_refusal_and_not_a_lack_of_permission() {
        let denied = libbpf_rs::Error::from_raw_os_error(libc::EACCES);
        let log = "-- BEGIN PROG LOAD LOG --\nR1 pointer |= pointer prohibited\nprocessed 72 insns\n-- END PROG LOAD LOG --\n";
        assert!(!is_not_permitted(&denied, log));
        assert!(is_not_permitted(&denied, "libbpf: prog 'on_fork': failed to load: -13\n"));
    }
}
