//! Programs that get one file at a time from xargs, find or a shell loop: which launches can be
//! merged, and the command that merges them.

use std::collections::{BTreeMap, HashSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::{name, quoted, replacement};
use crate::explain::advice::programs::is_sed_for_each_file;
use crate::explain::advice::tables::recipe;
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, base_name, is_version_of};
use crate::patterns::programs::has_property;
use crate::patterns::shells::{Dialect, is_shell};
use crate::patterns::words::contains;
use crate::patterns::xargs::XargsOptions;

/// Maximum batch size. The command line must not get too long.
const MAX_BATCH: usize = 1000;
/// Number of batches for each parallel process of xargs, so that all processes stay busy until the
/// end.
const BATCHES_PER_PROCESS: usize = 4;
/// Minimum share of distinct files, in percent. Repeated calls such as `rm -f conftest.o` are not a
/// list of files.
const MIN_DISTINCT_PERCENT: usize = 80;

/// What passes one file at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Launcher {
    /// `xargs`: the number of parallel processes (-P), and whether it replaces a placeholder (-I).
    Xargs {
        parallel: usize,
        replaces: bool,
    },
    Find,
    Shell(Dialect),
}

/// What launches that could be merged have in common, besides their common arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BatchKey {
    launcher: Launcher,
    has_destination: bool,
}

impl BatchKey {
    /// Returns the number of files per launch.
    pub(super) fn batch_size(&self, count: usize) -> usize {
        match self.launcher {
            Launcher::Xargs { parallel, .. } if parallel > 1 => {
                (count / (parallel * BATCHES_PER_PROCESS)).clamp(2, MAX_BATCH)
            }
            _ => MAX_BATCH,
        }
    }
}

/// Returns the batches of launches, the largest first. One launch could replace each batch: it has
/// one parent process and common arguments.
pub(super) fn batches(context: &RuleContext<'_, '_>, all: &[u32]) -> Vec<(BatchKey, Vec<u32>)> {
    type Common<'a> = (BatchKey, Option<usize>, Vec<&'a [u8]>);
    let members = all.iter().filter_map(|index| {
        let (key, common, file) = member(context, *index)?;
        Some(((key, context.forest().parent(*index as usize), common), (*index, file)))
    });
    let alike: BTreeMap<Common<'_>, Vec<(u32, &[u8])>> = grouped(members);
    let are_files = |files: &[(u32, &[u8])]| {
        let distinct: HashSet<&[u8]> = files.iter().map(|(_, file)| *file).collect();
        files.len() > 1 && distinct.len() * 100 >= files.len() * MIN_DISTINCT_PERCENT
    };
    let batches = alike.into_iter().filter(|(_, files)| are_files(files));
    let mut batches: Vec<(BatchKey, Vec<u32>)> =
        batches.map(|((key, ..), files)| (key, files.into_iter().map(|(index, _)| index).collect())).collect();
    batches.sort_by_key(|(_, batch)| std::cmp::Reverse(batch.len()));
    batches
}

/// The key of a launch, its common arguments and its file.
type Member<'a> = (BatchKey, Vec<&'a [u8]>, &'a [u8]);

/// Returns the key, the common arguments and the file of a launch that could be part of a batch.
fn member<'a>(context: &RuleContext<'_, 'a>, index: u32) -> Option<Member<'a>> {
    let launch = context.launch(index);
    let [exec] = &launch.execs[..] else { return None };
    let program = launch.command.name;
    let launcher = launcher_of(context, index)?;
    let is_loop = matches!(launcher, Launcher::Shell(_));
    // Without a recorded start-up, nothing shows how much of a long run is work.
    let is_small = launch.start_up.get().is_some() || !has_property(program, "heavy") || is_small(context, index);
    let is_read = is_loop && context.is_captured(index);
    if exec.interpreter().is_some() && is_loop && !has_property(program, "many")
        || exec.argv_cut
        || !is_small
        || is_read
        || !takes_many(launcher, program, exec)
    {
        return None;
    }
    let mut common: Vec<&[u8]> = exec.arguments().collect();
    let has_destination =
        has_property(program, "destination") && common.len() > 2 && !common.contains(&b"-t".as_slice());
    let at = common.len().checked_sub(if has_destination { 2 } else { 1 }).filter(|at| *at > 0)?;
    let file = common.remove(at);
    // A launch with a second file argument does not belong to a list of files.
    let has_other_file = common.iter().skip(1).take(at - 1).any(|argument| !argument.starts_with(b"-"));
    let is_pair = has_other_file && is_loop && has_destination;
    (!file.starts_with(b"-") && !is_pair).then_some((BatchKey { launcher, has_destination }, common, file))
}

/// Whether a launch works for less time than it takes to launch it. In a loop, these programs wait
/// only for the disk, so their waits do not count as work.
pub(super) fn is_small(context: &RuleContext<'_, '_>, index: u32) -> bool {
    context.small_work.is_mostly_tax(index as usize) || context.small_work.is_mostly_tax_by_cpu_time(index as usize)
}

/// Returns what launched a launch. `None` if the program is not a launcher, or already passes many
/// files at once.
pub(super) fn launcher_of(context: &RuleContext<'_, '_>, index: u32) -> Option<Launcher> {
    let exec = context.forest().launcher(index as usize)?;
    let arguments: Vec<&[u8]> = exec.arguments().collect();
    match exec.program_name() {
        b"xargs" | b"gxargs" if passes_a_part(&arguments) => None,
        b"xargs" | b"gxargs" => xargs(&arguments, context.recording.info.usable_cpus() as usize),
        // Only a command at the end of the expression can be batched. Anywhere else it is a test,
        // whose result find needs for each file.
        b"find" | b"gfind" => (arguments.last() == Some(&&b";"[..])).then_some(Launcher::Find),
        program => Dialect::of_program(program).map(Launcher::Shell),
    }
}

/// Whether an `xargs` call gives its program an argument that is more than an input: `-I{} echo
/// "file {}"`. Shells loop over such inputs.
fn passes_a_part(arguments: &[&[u8]]) -> bool {
    let options = XargsOptions::of(arguments);
    let (Some(placeholder), Some(command)) = (&options.placeholder, arguments.get(options.command..)) else {
        return false;
    };
    let is_part = |word: &&[u8]| contains(word, placeholder) && *word != &placeholder[..];
    !command.first().is_some_and(|program| is_shell(base_name(program))) && command.iter().any(is_part)
}

/// Returns the launcher of an `xargs` call if its options pass one argument or line at a time.
fn xargs(arguments: &[&[u8]], cpus: usize) -> Option<Launcher> {
    let options = XargsOptions::of(arguments);
    let number = |value: Vec<u8>| name(&value).parse().ok().filter(|parallel| *parallel > 0).unwrap_or(cpus);
    let replaces = options.placeholder.is_some();
    (!options.single.is_empty()).then(|| Launcher::Xargs { parallel: options.parallel.map_or(1, number), replaces })
}

/// Whether a program may get many files from this launcher.
fn takes_many(launcher: Launcher, program: &[u8], exec: &Exec<'_>) -> bool {
    let arguments: Vec<&[u8]> = exec.arguments().skip(1).collect();
    match launcher {
        Launcher::Shell(_) => has_property(program, "many") || is_sed_for_each_file(program, &arguments),
        Launcher::Xargs { .. } | Launcher::Find => {
            let is_sed = program == b"sed" && is_sed_for_each_file(program, &arguments);
            is_sed || !has_property(program, "one") && !is_version_of(program, b"python")
        }
    }
}

/// Returns the lines of the fix for a launch with the arguments `argv`, of which one is an `input`,
/// such as a file. `size` is their number per launch if xargs runs several launches in parallel.
/// With several batches, each has its own options or destination.
pub(super) fn snippet(key: &BatchKey, argv: &[Vec<u8>], input: &str, size: usize, batches: usize) -> Vec<String> {
    let file = argv.len().saturating_sub(if key.has_destination { 2 } else { 1 });
    let program = argv.first().map(|program| name(program)).unwrap_or_default();
    let (options, destination) = (join_words(argv.get(1..file)), join_words(argv.get(file + 1..)));
    let (options, destination) = match (batches > 1, key.has_destination) {
        (true, true) => (options, " DIRECTORY".to_owned()),
        (true, false) => (" OPTIONS...".to_owned(), destination),
        (false, _) => (options, destination),
    };
    let target = if destination.is_empty() { String::new() } else { format!(" -t{destination}") };
    let (launcher, each, file, parallel) = match key.launcher {
        Launcher::Xargs { parallel, replaces: true } => ("xargs", "-I{}", " {}", parallel),
        Launcher::Xargs { parallel, .. } => ("xargs", "-n1", "", parallel),
        Launcher::Find => ("find", "", " {}", 1),
        Launcher::Shell(_) => ("shell", "", " \"$f\"", 1),
    };
    let is_sh = key.launcher == Launcher::Shell(Dialect::Posix);
    let values = [
        ("input", input),
        ("each", each),
        ("workers", &if parallel > 1 { format!(" -P{parallel}") } else { String::new() }),
        ("batch", &if parallel > 1 { format!(" -n{size}") } else { String::new() }),
        ("command", &format!("{program}{options}")),
        ("file", file),
        ("destination", &destination),
        ("without", &format!("{program}{options}{target}")),
        ("files", if is_sh { "FILES..." } else { "\"${files[@]}\"" }),
    ];
    let several = if batches > 1 { "several" } else { "" };
    let directory = if key.has_destination { "directory" } else { "" };
    let mut fix = recipe("many-at-once", &[launcher, several, directory], &values).fix;
    // The call for one file each, and that for many.
    let calls = replacement(fix[1].trim(), fix[2].trim());
    fix.splice(1..3, calls);
    fix
}

/// Formats words with a space before each. Without `--`, which is added where it is needed.
fn join_words(words: Option<&[Vec<u8>]>) -> String {
    let words = words.unwrap_or_default().iter().filter(|word| *word != b"--");
    words.map(|word| format!(" {}", quoted(&name(word)))).collect()
}
