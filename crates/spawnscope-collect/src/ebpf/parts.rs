//! The purposes of the BPF programs: which program replaces a refused one, and what is unknown if
//! the kernel refuses all programs for a purpose.

use super::{last, samples};
use crate::wire::WireSettings;
use crate::{CollectError, Refusal};
use spawnscope_data::event::Missing;

/// Programs with the same purpose.
struct Part {
    /// The best first.
    choices: &'static [Choice],
    /// What is unknown if none of them loads; `None`: the collector cannot work without them.
    without: Option<&'static str>,
}

/// A program for a purpose.
struct Choice {
    program: &'static str,
    /// What is unknown if this program is used.
    lacks: Option<&'static str>,
}

const fn complete(program: &'static str) -> Choice {
    Choice { program, lacks: None }
}

const fn fallback(program: &'static str, lacks: &'static str) -> Choice {
    Choice { program, lacks: Some(lacks) }
}

const fn essential(choices: &'static [Choice]) -> Part {
    Part { choices, without: None }
}

const fn optional(choices: &'static [Choice], without: &'static str) -> Part {
    Part { choices, without: Some(without) }
}

/// The program that puts the first threads into the map of tasks, in the build where that map is a
/// hash.
pub(super) const SEEDER: &str = "on_seed";
/// The program that reports stacks. It is loaded only if stacks are requested.
const STACK_PROGRAM: &str = "on_fork_stack";
/// Programs that are loaded only if samples are requested, in addition to the sampling clock.
const SAMPLE_PROGRAMS: [&str; 3] = ["on_switch_sample", "on_sys_exit_sample", "on_sys_enter_sample"];

const OBJECTS: &str = "what blocked threads wait for";

const PARTS: [Part; 16] = [
    optional(&[complete("on_waking"), complete("on_waking_anywhere")], "what woke a waiting thread"),
    optional(
        &[
            complete("on_switch"),
            complete("on_switch_before_5_18"),
            fallback("on_switch_without_objects", OBJECTS),
            fallback("on_switch_before_5_18_without_objects", OBJECTS),
        ],
        "queue, CPU time, slices, and the end of teardown",
    ),
    optional(&[complete("on_signal")], "the exact end of teardown (the exiting process's last switch is used instead)"),
    essential(&[complete("on_exec")]),
    essential(&[complete("on_fork"), fallback("on_fork_without_lines", "the script lines that request launches")]),
    essential(&[complete("on_exit")]),
    essential(&[
        complete("on_sys_enter"),
        fallback("on_sys_enter_without_lines", "the lines of dash scripts that request launches"),
    ]),
    essential(&[complete("on_sys_exit")]),
    essential(&[complete("on_free")]),
    essential(&[complete(SEEDER)]),
    optional(&[complete(STACK_PROGRAM)], "native call chains"),
    optional(&[complete(samples::PROGRAM)], "what threads do on-CPU"),
    optional(&[complete(SAMPLE_PROGRAMS[0])], "where threads wait"),
    optional(&[complete(SAMPLE_PROGRAMS[1])], "the user stacks of waiting threads"),
    optional(&[complete(SAMPLE_PROGRAMS[2])], "the user stacks of threads that end soon after a sample"),
    optional(&[complete(last::PROGRAM)], last::WITHOUT),
];

/// Whether the settings request what a program collects.
pub(super) fn is_requested(program: &str, settings: &WireSettings) -> bool {
    if program == STACK_PROGRAM {
        settings.stacks != 0
    } else if program == samples::PROGRAM || SAMPLE_PROGRAMS.contains(&program) {
        settings.sample_period != 0
    } else {
        true
    }
}

/// Chooses a program for each part; `None` if all programs of the part are refused.
///
/// # Errors
/// If all programs of an essential part are refused.
pub(super) fn choose(refusals: &[Refusal]) -> Result<Vec<Option<&'static str>>, CollectError> {
    PARTS.iter().map(|part| choose_for_part(part, refusals)).collect()
}

fn choose_for_part(part: &Part, refusals: &[Refusal]) -> Result<Option<&'static str>, CollectError> {
    let usable = part.choices.iter().find(|choice| find_refusal(refusals, choice.program).is_none());
    if usable.is_none() && part.without.is_none() {
        let last = part.choices.last().and_then(|choice| find_refusal(refusals, choice.program));
        return Err(CollectError::Refused(last.cloned().unwrap_or_default()));
    }
    Ok(usable.map(|choice| choice.program))
}

fn find_refusal<'a>(refusals: &'a [Refusal], program: &str) -> Option<&'a Refusal> {
    refusals.iter().find(|refusal| refusal.program == program)
}

/// Returns what is unknown with the chosen programs.
pub(super) fn missing(chosen: &[Option<&'static str>], settings: &WireSettings) -> Vec<Missing> {
    PARTS
        .iter()
        .zip(chosen)
        .filter(|(part, _)| is_requested(part.choices[0].program, settings))
        .filter_map(|(part, program)| {
            let effect = match program {
                None => part.without,
                Some(program) => part.choices.iter().find(|choice| choice.program == *program)?.lacks,
            };
            Some(Missing { what: part.choices[0].program.to_owned(), effect: effect?.to_owned() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(names: &[&str]) -> Result<Vec<Option<&'static str>>, CollectError> {
        let refusals = names.iter().map(|name| Refusal {
            program: (*name).to_owned(),
            reason: "R1 unbounded memory access".to_owned(),
            log: Vec::new(),
        });
        choose(&refusals.collect::<Vec<_>>())
    }

    #[test]
    fn a_refused_program_is_replaced_by_its_fallback_or_what_is_unknown_is_reported() {
        let settings = zerocopy::FromZeros::new_zeroed();
        assert_eq!(without(&[]).unwrap()[1], Some("on_switch"));
        assert_eq!(without(&["on_switch"]).unwrap()[1], Some("on_switch_before_5_18"));
        let mut refused = vec!["on_switch", "on_switch_before_5_18"];
        let chosen = without(&refused).unwrap();
        assert_eq!(chosen[1], Some("on_switch_without_objects"));
        assert_eq!(missing(&chosen, &settings)[0].effect, OBJECTS);
        refused.extend(["on_switch_without_objects", "on_switch_before_5_18_without_objects"]);
        let chosen = without(&refused).unwrap();
        assert_eq!(chosen[1], None);
        assert!(missing(&chosen, &settings)[0].effect.contains("queue"));
    }

    #[test]
    fn a_part_that_the_settings_do_not_request_is_not_missing() {
        let settings = zerocopy::FromZeros::new_zeroed();
        assert_eq!(missing(&without(&[STACK_PROGRAM]).unwrap(), &settings), []);
    }

    #[test]
    fn the_error_for_a_refused_essential_program_names_it_and_the_reason() {
        assert!(without(&["on_fork"]).is_ok());
        let error = without(&["on_exec"]).unwrap_err().to_string();
        assert!(error.contains("on_exec") && error.contains("unbounded"), "{error}");
    }
}
