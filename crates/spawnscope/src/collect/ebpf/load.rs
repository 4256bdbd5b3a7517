//! Loads the BPF object. A program that this kernel refuses is replaced by its fallback or left out, and what is
//! therefore unknown is said; only without the essential ones is there no collector.

use std::sync::Mutex;

use libbpf_rs::{ErrorKind, Object, ObjectBuilder, OpenObject, PrintLevel};
use zerocopy::{FromBytes, IntoBytes};

use super::wire::{WireSettings, WireShared};
use super::{last, samples};
use crate::collect::CollectError;
use crate::event::Missing;

/// Aligned as ELF readers want it.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/spawnscope.bpf.o")));

/// A program, what does the same less well, and what is unknown when neither loads (`None`: nothing works then).
struct Part {
    program: &'static str,
    fallback: Option<&'static str>,
    without: Option<&'static str>,
}

const PARTS: [Part; 14] = [
    Part {
        program: "on_waking",
        fallback: Some("on_waking_anywhere"),
        without: Some("who woke a waiting thread"),
    },
    Part {
        program: "on_switch",
        fallback: Some("on_switch_before_5_18"),
        without: Some("queue, CPU time, slices, and where teardown ends"),
    },
    Part {
        program: "on_signal",
        fallback: None,
        without: Some("the exact end of teardown (the exiting process's last switch stands for it)"),
    },
    Part {
        program: "on_exec",
        fallback: None,
        without: None,
    },
    Part {
        program: "on_fork",
        fallback: None,
        without: None,
    },
    Part {
        program: "on_exit",
        fallback: None,
        without: None,
    },
    Part {
        program: "on_sys_enter",
        fallback: None,
        without: None,
    },
    Part {
        program: "on_sys_exit",
        fallback: None,
        without: None,
    },
    Part {
        program: STACKS,
        fallback: None,
        without: Some("native call chains"),
    },
    Part {
        program: samples::PROGRAM,
        fallback: None,
        without: Some("what threads do while they have a CPU"),
    },
    Part {
        program: AROUND_SAMPLES[0],
        fallback: None,
        without: Some("where threads wait"),
    },
    Part {
        program: AROUND_SAMPLES[1],
        fallback: None,
        without: Some("where in their own code threads wait"),
    },
    Part {
        program: AROUND_SAMPLES[2],
        fallback: None,
        without: Some("where in their own code threads are that end soon"),
    },
    Part {
        program: last::PROGRAM,
        fallback: None,
        without: Some(last::WITHOUT),
    },
];

/// Loaded only when stacks are wanted.
const STACKS: &str = "on_fork_stack";
/// Loaded only when samples are wanted.
const AROUND_SAMPLES: [&str; 3] = ["on_switch_sample", "on_sys_exit_sample", "on_sys_enter_sample"];

/// Whether the settings ask for what a program does.
fn is_asked_for(program: &str, settings: &WireSettings) -> bool {
    if program == STACKS {
        settings.stacks != 0
    } else if program == samples::PROGRAM || AROUND_SAMPLES.contains(&program) {
        settings.sample_period != 0
    } else {
        true
    }
}

/// Names of programs that are to be treated as refused by the kernel, separated by commas: for tests.
const REFUSE_VARIABLE: &str = "SPAWNSCOPE_EBPF_REFUSE";

/// Likewise, in that variable: that programs can walk a process's mappings.
const WALK: &str = "bpf_iter_task_vma_new";

/// Whether programs may try to walk a process's mappings.
pub(super) fn may_walk_mappings() -> bool {
    !std::env::var(REFUSE_VARIABLE).is_ok_and(|names| names.split(',').any(|name| name == WALK))
}

/// A loaded object, not yet attached.
pub(super) struct Loaded {
    pub(super) object: Object,
    pub(super) missing: Vec<Missing>,
}

/// What libbpf printed during the last attempt: the only place where it names the program that the kernel refused.
static MESSAGES: Mutex<String> = Mutex::new(String::new());

/// Loads as much of the object as this kernel takes.
pub(super) fn load(buffer_bytes: u32, settings: &WireSettings, first_free_id: u64) -> Result<Loaded, CollectError> {
    let mut refused: Vec<String> = std::env::var(REFUSE_VARIABLE)
        .map(|names| names.split(',').map(str::to_owned).collect())
        .unwrap_or_default();
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep_message)));
    let mut reason = String::new();
    loop {
        let chosen = choose(&refused, &reason)?;
        take_messages();
        let mut open = ObjectBuilder::default()
            .open_memory(&OBJECT.0)
            .map_err(|error| unsupported(&error))?;
        configure(&mut open, buffer_bytes, settings, first_free_id, &chosen)?;
        match open.load() {
            Ok(object) => {
                return Ok(Loaded {
                    object,
                    missing: missing(&chosen),
                });
            }
            Err(error) => {
                let messages = take_messages();
                if is_not_permitted(&error, &messages) {
                    return Err(not_permitted());
                }
                match refused_program(&messages) {
                    Some(program) if !refused.contains(&program) => refused.push(program),
                    _ => return Err(unsupported(&error)),
                }
                reason = verifier_reason(&messages).unwrap_or_else(|| error.to_string());
            }
        }
    }
}

/// The program that stands for each part, `None` where neither loads.
fn choose(refused: &[String], reason: &str) -> Result<Vec<Option<&'static str>>, CollectError> {
    let usable = |program: &&'static str| !refused.iter().any(|name| name == program);
    PARTS
        .iter()
        .map(
            |part| match Some(part.program).filter(usable).or(part.fallback.filter(usable)) {
                None if part.without.is_none() => Err(CollectError::Unsupported(format!(
                    "the kernel refuses the program {} ({reason})",
                    part.program
                ))),
                program => Ok(program),
            },
        )
        .collect()
}

fn missing(chosen: &[Option<&'static str>]) -> Vec<Missing> {
    let absent = PARTS.iter().zip(chosen).filter(|(_, program)| program.is_none());
    absent
        .map(|(part, _)| Missing {
            what: part.program.to_owned(),
            effect: part.without.unwrap_or_default().to_owned(),
        })
        .collect()
}

fn configure(
    open: &mut OpenObject,
    buffer_bytes: u32,
    settings: &WireSettings,
    first_free_id: u64,
    chosen: &[Option<&'static str>],
) -> Result<(), CollectError> {
    for mut program in open.progs_mut() {
        let wanted = chosen.iter().flatten().any(|name| program.name() == *name)
            && program.name().to_str().is_some_and(|name| is_asked_for(name, settings));
        program.set_autoload(wanted);
    }
    let has_samples = settings.sample_period != 0;
    for mut map in open.maps_mut() {
        if map.name() == "events" || (map.name() == "stacks" && (settings.stacks != 0 || has_samples)) {
            map.set_max_entries(buffer_bytes).map_err(|error| unsupported(&error))?;
        } else if map.name() == "waits" || map.name() == "sample_scratches" {
            map.set_autocreate(has_samples).map_err(|error| unsupported(&error))?;
        } else if map.name() == "python_scratches" {
            let cpus = libbpf_rs::num_possible_cpus().map_err(|error| unsupported(&error))?;
            map.set_max_entries(cpus as u32).map_err(|error| unsupported(&error))?;
        } else if map.name() == ".rodata.settings" {
            fill(map.initial_value_mut(), settings.as_bytes())?;
        } else if map.name() == ".data.shared" {
            let shared = WireShared {
                last_id: first_free_id - 1,
                arrival_offset: 0,
                terminal_used: 0,
                pid_level_plus_one: 0,
            };
            fill(map.initial_value_mut(), shared.as_bytes())?;
        }
    }
    Ok(())
}

fn fill(target: Option<&mut [u8]>, value: &[u8]) -> Result<(), CollectError> {
    let target = target.and_then(|target| target.get_mut(..value.len()));
    target
        .map(|target| target.copy_from_slice(value))
        .ok_or_else(|| CollectError::Unsupported("the BPF object lacks its settings".to_owned()))
}

/// Reads what the programs share with us.
pub(super) fn read_shared(value: &[u8]) -> Option<WireShared> {
    WireShared::read_from_prefix(value).ok().map(|(shared, _)| shared)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that libbpf-rs wants")]
fn keep_message(_: PrintLevel, message: String) {
    if let Ok(mut messages) = MESSAGES.lock() {
        messages.push_str(&message);
    }
}

fn take_messages() -> String {
    MESSAGES
        .lock()
        .map(|mut messages| std::mem::take(&mut *messages))
        .unwrap_or_default()
}

/// The verifier says EACCES too; but then it has run, and its log tells why.
fn is_not_permitted(error: &libbpf_rs::Error, messages: &str) -> bool {
    error.kind() == ErrorKind::PermissionDenied && verifier_reason(messages).is_none()
}

/// libbpf says: `libbpf: prog 'on_waking': failed to load: -2`.
fn refused_program(messages: &str) -> Option<String> {
    let line = messages.lines().find(|line| line.contains("failed to load: -"))?;
    Some(line.split('\'').nth(1)?.to_owned())
}

/// The verifier's log ends with its reason and a line of statistics.
fn verifier_reason(messages: &str) -> Option<String> {
    let log = messages
        .split("-- BEGIN PROG LOAD LOG --")
        .nth(1)?
        .split("-- END PROG LOAD LOG --")
        .next()?;
    log.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("processed "))
        .map(str::to_owned)
}

fn unsupported(error: &libbpf_rs::Error) -> CollectError {
    if error.kind() == ErrorKind::PermissionDenied {
        return not_permitted();
    }
    let reason = take_messages()
        .lines()
        .rev()
        .find(|line| line.contains("libbpf:"))
        .map(str::to_owned);
    CollectError::Unsupported(reason.unwrap_or_else(|| error.to_string()))
}

fn not_permitted() -> CollectError {
    let program = std::env::current_exe().map(|path| path.display().to_string());
    CollectError::NotPermitted {
        program: program.unwrap_or_else(|_| "spawnscope".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_program_is_found_in_what_libbpf_prints() {
        let text = "libbpf: prog 'on_waking': BPF program load failed: -ENOENT\nlibbpf: prog 'on_waking': failed to load: -2\n";
        assert_eq!(refused_program(text).as_deref(), Some("on_waking"));
        assert_eq!(refused_program("libbpf: failed to load object 'x'"), None);
    }

    #[test]
    fn the_verifiers_eacces_is_a_refusal_and_no_lack_of_rights() {
        let denied = libbpf_rs::Error::from_raw_os_error(libc::EACCES);
        let log = "-- BEGIN PROG LOAD LOG --\nR1 pointer |= pointer prohibited\nprocessed 72 insns\n-- END PROG LOAD LOG --\n";
        assert!(!is_not_permitted(&denied, log));
        assert!(is_not_permitted(
            &denied,
            "libbpf: prog 'on_fork': failed to load: -13\n"
        ));
    }

    #[test]
    fn a_refused_program_is_replaced_by_its_fallback_and_then_left_out_with_words() {
        let without = |names: &[&str]| choose(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), "");
        assert_eq!(without(&[]).unwrap()[1], Some("on_switch"));
        assert_eq!(without(&["on_switch"]).unwrap()[1], Some("on_switch_before_5_18"));
        let chosen = without(&["on_switch", "on_switch_before_5_18"]).unwrap();
        assert_eq!(chosen[1], None);
        assert!(missing(&chosen)[0].effect.contains("queue"));
        assert!(without(&["on_fork"]).is_err());
    }
}
