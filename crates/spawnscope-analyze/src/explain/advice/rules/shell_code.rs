//! Commands for a shell's start-up file that print the same text each time: `npm completion`,
//! `direnv hook bash`, and calls of version managers, such as `eval "$(pyenv init -)"`, which
//! starts a dozen scripts.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::thresholds::longest_groups;
use crate::patterns::calls::Call;
use crate::patterns::chains::{direct_manager_call, is_in_version_manager};
use crate::patterns::shells::{Dialect, is_shell};
use crate::patterns::words::Words;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 3;
/// First arguments with which any program prints its completions.
const COMPLETIONS: [&[u8]; 2] = [b"completion", b"completions"];
/// Programs that print other code, and their first argument. Programs whose output differs from
/// shell to shell (`fnm env`), or has the value of PATH (`mise activate`, `opam env`), are not
/// listed.
const PRINTERS: Words = Words(
    "atuin:init brew:shellenv broot:--print-shell-function conda:shell.bash conda:shell.zsh dircolors:-b
     direnv:hook fzf:--bash fzf:--zsh jump:shell mcfly:init nodenv:init oh-my-posh:init plenv:init
     pyenv:init pyenv:virtualenv-init rbenv:init starship:init thefuck:--alias zoxide:init",
);
/// Commands of version managers whose output a start-up file evaluates.
const INIT: [&[u8]; 3] = [b"activate", b"init", b"virtualenv-init"];

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let calls = context.grouped_by(|index, launch| {
        let manager = direct_manager_call(launch).filter(|_| !is_in_version_manager(context.forest(), index));
        let words = manager.or_else(|| {
            let call = launch.execs.last().and_then(Call::of)?;
            let launcher = context.forest().launcher(index as usize)?;
            let is_printer = prints_constant_code(call.name, &call.arguments) && is_shell(launcher.program_name());
            is_printer.then(|| [&[call.name], &call.arguments[..]].concat())
        });
        Some((launch.birth_command.name, words?))
    });
    let calls = longest_groups(context, calls, MAX_FINDINGS).into_iter();
    calls.filter_map(|((caller, words), all)| finding(context, caller, &words, all)).collect()
}

/// Returns the finding about a call. `None` for commands that change something, such as `pyenv
/// install`.
fn finding(context: &RuleContext<'_, '_>, caller: &[u8], words: &[&[u8]], all: Vec<u32>) -> Option<Finding> {
    let (program, command, call) = (name(words.first()?), *words.get(1)?, name(&words.join(&b' ')));
    let is_manager = direct_manager_call(context.launch(all[0])).is_some();
    let is_completion = COMPLETIONS.contains(&command);
    let is_zsh = Dialect::of_parent(context.forest(), all[0] as usize) == Some(Dialect::Zsh);
    let prints_code = is_completion || !is_manager || INIT.contains(&command);
    let (key, case) = match prints_code {
        true => ("shell-code", if is_completion && !is_zsh { "completion" } else { "" }.to_owned()),
        false => ("version-manager", name(command)),
    };
    let purpose = match command {
        _ if is_completion => "completion".to_owned(),
        _ if INIT.contains(&command) => name(command),
        _ => "init".to_owned(),
    };
    let spent = time(context.spent_on(&all));
    let (times, evidence) = match all.len() {
        1 => ("once".to_owned(), format!("it takes {spent}, and its result is the same each time")),
        count => (times(count), format!("{} take {spent} in all, with the same result each time", launches(count))),
    };
    let rule = if is_manager { "version-manager" } else { "shell-code" };
    let finding = Finding::measured(rule, format!("{} calls `{call}` {times}", name(caller)), all)
        .fixed_elsewhere()
        .evidence(evidence)
        .recipe(key, &[&case], &[("program", &program), ("call", &call), ("purpose", &purpose)])
        .predicted_as(context, Change::Remove);
    // Other commands change something.
    (!finding.fix.is_empty()).then_some(finding)
}

/// Whether a program prints code for a shell that is the same each time.
pub(crate) fn prints_constant_code(program: &[u8], arguments: &[&[u8]]) -> bool {
    let first = arguments.first().copied().unwrap_or_default();
    COMPLETIONS.contains(&first) || PRINTERS.contains(&[program, b":", first].concat())
}
