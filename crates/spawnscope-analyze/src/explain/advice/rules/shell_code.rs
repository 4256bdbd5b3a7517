//! Programs that print code for a shell's start-up file (`npm completion`, `direnv hook bash`).
//! They are started again for each shell, and print the same code each time.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::name;
use crate::explain::advice::rules::version_manager::{same_result, save_output};
use crate::explain::advice::thresholds::longest_groups;
use crate::patterns::calls::Call;
use crate::patterns::shells::is_shell;

const MAX_FINDINGS: usize = 3;
/// First arguments with which any program prints its completions.
const COMPLETIONS: [&[u8]; 2] = [b"completion", b"completions"];
/// Programs that print other code, and their first argument. Programs whose output differs from
/// shell to shell (`fnm env`) are not listed.
const PRINTERS: [(&[u8], &[u8]); 22] = [
    (b"atuin", b"init"),
    (b"brew", b"shellenv"),
    (b"broot", b"--print-shell-function"),
    (b"conda", b"shell.bash"),
    (b"conda", b"shell.zsh"),
    (b"dircolors", b"-b"),
    (b"direnv", b"hook"),
    (b"fzf", b"--bash"),
    (b"fzf", b"--zsh"),
    (b"jump", b"shell"),
    (b"mcfly", b"init"),
    (b"mise", b"activate"),
    (b"nodenv", b"init"),
    (b"oh-my-posh", b"init"),
    (b"opam", b"env"),
    (b"plenv", b"init"),
    (b"pyenv", b"init"),
    (b"pyenv", b"virtualenv-init"),
    (b"rbenv", b"init"),
    (b"starship", b"init"),
    (b"thefuck", b"--alias"),
    (b"zoxide", b"init"),
];

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let calls = context.grouped_by(|index, launch| {
        let call = launch.execs.last().and_then(Call::of).filter(prints_code)?;
        let launcher = context.forest().launcher(index as usize)?;
        is_shell(launcher.program_name()).then_some((launch.birth_command.name, call.name, call.arguments))
    });
    let calls = longest_groups(context, calls, MAX_FINDINGS).into_iter();
    calls.map(|((caller, program, arguments), all)| finding(context, caller, &name(program), &arguments, all)).collect()
}

fn finding(context: &RuleContext<'_, '_>, caller: &[u8], program: &str, arguments: &[&[u8]], all: Vec<u32>) -> Finding {
    let call = format!("{program} {}", name(&arguments.join(&b' ')));
    let is_completion = arguments.first().is_some_and(|first| COMPLETIONS.contains(first));
    let purpose = if is_completion { "completion" } else { "init" };
    let on_first_use = is_completion.then(|| {
        let directory = "~/.local/share/bash-completion/completions";
        ["or let bash-completion load it on first use:".to_owned(), format!("  {call} >{directory}/{program}")]
    });
    same_result(context, "shell-code", caller, &call, all)
        .fix_lines(save_output(&call, &format!(".{program}-{purpose}.sh")))
        .fix_lines(on_first_use.into_iter().flatten())
        .limits(format!("the file must be written again after each update of {program}"))
}

fn prints_code(call: &Call<'_>) -> bool {
    prints_constant_code(call.name, &call.arguments)
}

/// Whether a program prints code for a shell that is the same each time.
pub(crate) fn prints_constant_code(program: &[u8], arguments: &[&[u8]]) -> bool {
    let first = arguments.first().copied().unwrap_or_default();
    COMPLETIONS.contains(&first) || PRINTERS.contains(&(program, first))
}
