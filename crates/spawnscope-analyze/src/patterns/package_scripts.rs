//! Runners of package scripts (`npm run`, `npx`): programs in JavaScript that start one command,
//! wait for it, and do little else.

use super::calls::Call;
use super::shells::{command_of, wrapped_child};
use crate::model::launch::{Exec, is_version_of};
use crate::model::tree::Forest;

/// The runners, and their subcommands that run one script or program. `npx` has no subcommands: its
/// first argument is a program.
const RUNNERS: [(&[u8], &[&[u8]]); 4] = [
    (b"npm", &[b"exec", b"restart", b"run", b"run-script", b"start", b"stop", b"t", b"test", b"x"]),
    (b"npx", &[]),
    (b"pnpm", &[b"exec", b"run", b"start", b"test"]),
    (b"yarn", &[b"exec", b"run", b"start", b"test"]),
];
/// The ends of the runners' file names: `npm` is a link to `npm-cli.js`.
const ENDINGS: [&[u8]; 4] = [b".js", b".cjs", b".mjs", b"-cli"];

/// A launch of a runner that started only one command.
pub(crate) struct ScriptCall<'a> {
    pub(crate) runner: &'static str,
    /// The arguments of the runner: `run`, `lint`.
    pub(crate) arguments: Vec<&'a [u8]>,
    /// The launch that the runner waited for.
    pub(crate) child: u32,
    /// The text that the child's shell ran. `None` if the child is not a shell.
    pub(crate) command: Option<&'a [u8]>,
}

impl<'a> ScriptCall<'a> {
    /// Returns the call that a launch makes. `None` for other programs, or if the runner started
    /// more than one script, such as `prelint` before `lint`.
    pub(crate) fn of(forest: &Forest<'a>, index: u32) -> Option<ScriptCall<'a>> {
        let (runner, arguments) = runner_of(forest.launches[index as usize].execs.last()?)?;
        let child = wrapped_child(forest, index)?;
        let command = forest.launches[child as usize].execs.first().and_then(command_of);
        Some(ScriptCall { runner, arguments, child, command })
    }

    /// Returns the name of the script in `package.json`. `None` if the runner starts a program by
    /// its name.
    pub(crate) fn script(&self) -> Option<&'a [u8]> {
        script(self.runner, &self.arguments)
    }
}

fn script<'a>(runner: &str, arguments: &[&'a [u8]]) -> Option<&'a [u8]> {
    let (subcommand, others) = arguments.split_first()?;
    match *subcommand {
        _ if runner == "npx" => None,
        b"exec" | b"x" => None,
        b"run" | b"run-script" => others.iter().find(|word| !word.starts_with(b"-")).copied(),
        b"t" => Some(b"test"),
        script => Some(script),
    }
}

/// Whether a launch is a runner of a script, which may start other scripts, too.
pub(crate) fn runs_script(forest: &Forest<'_>, index: usize) -> bool {
    let call = forest.launches[index].execs.last().and_then(runner_of);
    call.is_some_and(|(runner, arguments)| script(runner, &arguments).is_some())
}

/// Whether a runner started the script that makes a launch.
pub(crate) fn is_in_script(forest: &Forest<'_>, index: u32) -> bool {
    forest
        .ancestors(index as usize)
        .any(|ancestor| forest.launches[ancestor].execs.last().and_then(runner_of).is_some())
}

/// Returns the runner that an exec starts, and the runner's arguments.
fn runner_of<'a>(exec: &Exec<'a>) -> Option<(&'static str, Vec<&'a [u8]>)> {
    if !is_version_of(exec.program_name(), b"node") {
        return None;
    }
    let call = Call::of(exec)?;
    let name = ENDINGS.iter().fold(call.name, |name, ending| name.strip_suffix(*ending).unwrap_or(name));
    let (runner, subcommands) = RUNNERS.iter().find(|(runner, _)| *runner == name)?;
    // `npm -s test`. An option with a value, such as a directory, may choose another package.
    let is_option = |word: &&&[u8]| !subcommands.is_empty() && word.starts_with(b"-") && !word.contains(&b'=');
    let options = call.arguments.iter().take_while(is_option).count();
    let arguments = call.arguments[options..].to_vec();
    let is_call = subcommands.is_empty() || subcommands.contains(arguments.first()?);
    is_call.then_some((std::str::from_utf8(runner).ok()?, arguments))
}
