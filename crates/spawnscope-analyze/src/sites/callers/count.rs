//! The call sites of all launches of a recording, without duplicates, and the most frequent call
//! sites of a set of launches.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::call_site::{CallSite, Detail};
use crate::model::frames::Frame;
use crate::model::launch::base_name;
use crate::model::tree::Forest;
use crate::patterns::programs::subcommand_of;
use crate::patterns::shells::{command_of, wrapped_child};
use spawnscope_data::event::Language;
use spawnscope_data::rows::StackId;

/// Maximum number of call sites reported for one set of launches.
const MAX_CALL_SITES: usize = 10;

/// Maximum number of inline scripts (`-c`) with the same first word that are reported separately.
const MAX_SEPARATE_SCRIPTS: u32 = 4;

/// The call site of each launch of a recording.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    call_sites: Vec<CallSite>,
    /// The requester of each launch, by index.
    requesters: Vec<Requester>,
}

/// What determines a call site: the call chains in the script and in machine code, the program that
/// ran the script, and the inline script (`-c`).
type Chains<'a> = (Option<StackId>, Option<StackId>, &'a [u8], Option<&'a [u8]>);

#[derive(Clone, Copy, Debug)]
enum Requester {
    /// No recorded process: the launch is the command, which the recorder launched, or the process
    /// existed before the recording.
    NoCaller,
    /// A recorded process, but its call chain shows no call site.
    Unknown,
    /// An index into `call_sites`.
    CallSite(u32),
}

impl Callers {
    /// Finds the call site of every launch.
    #[must_use]
    pub fn find(forest: &Forest<'_>, detail: Detail) -> Callers {
        Callers::find_without(forest, detail, &Helpers::default())
    }

    /// Finds the line of every launch that decides what is launched: the line that calls a helper
    /// function, and the line that gives a script to a shell.
    pub(crate) fn behind_helpers(forest: &Forest<'_>) -> Callers {
        let mut callers = Callers::find_without(forest, Detail::Line, &helpers(forest));
        // Parents come before their children. A script that was given with `-c` is code of whatever
        // gave it.
        for index in 0..forest.launches.len() {
            let is_inline =
                callers.call_site_of(index).is_some_and(|site| site.language.is_script() && site.file.is_none());
            let mut shells = forest.ancestors(index);
            let shell = shells.find(|above| !forest.launches[*above].execs.is_empty()).filter(|_| is_inline);
            let outer = shell.filter(|shell| callers.call_site_of(*shell).is_some_and(|site| site.file.is_some()));
            if let Some(outer) = outer {
                callers.requesters[index] = callers.requesters[outer];
            }
        }
        callers
    }

    fn find_without<'a>(forest: &Forest<'a>, detail: Detail, helpers: &Helpers<'a>) -> Callers {
        let requesters = Vec::with_capacity(forest.launches.len());
        let mut callers = Callers { requesters, ..Callers::default() };
        let mut known: HashMap<CallSite, u32> = HashMap::new();
        // Many launches share a call chain, and many call chains share a call site.
        let mut by_chain: HashMap<Chains<'_>, Option<u32>> = HashMap::new();
        for (index, launch) in forest.launches.iter().enumerate() {
            let script = launch.script_stack;
            let inline_script = script.and_then(|_| command_of(forest.launcher(index)?));
            let chain = (script, launch.native_stack, launch.birth_command.name, inline_script);
            let call_site = *by_chain.entry(chain).or_insert_with(|| {
                let call_site = CallSite::find(forest, launch, inline_script, detail, helpers)?;
                let call_site = call_site.named_as_in(forest.launcher(index));
                Some(*known.entry(call_site).or_insert_with_key(|call_site| {
                    callers.call_sites.push(call_site.clone());
                    callers.call_sites.len() as u32 - 1
                }))
            });
            callers.requesters.push(match call_site {
                _ if !launch.is_launch() || launch.parent.get().is_none() => Requester::NoCaller,
                Some(call_site) => Requester::CallSite(call_site),
                None => Requester::Unknown,
            });
        }
        // Inline scripts with the same first word are one command with different arguments.
        callers.merge(program_and_first_word, MAX_SEPARATE_SCRIPTS, |call_site, (_, word)| {
            call_site.text = Some([&word, " …".as_bytes()].concat());
        });
        // The targets of one line of a makefile, such as a pattern rule, are one call site.
        callers.merge(line_of_makefile, 1, |call_site, _| call_site.function = None);
        mark_namesakes(&mut callers.call_sites);
        callers
    }

    /// Changes the call sites with the same key if there are more of them than `max`, and merges
    /// call sites that have become equal.
    fn merge<K: Hash + Eq>(
        &mut self,
        key: impl Fn(&CallSite) -> Option<K>,
        max: u32,
        change: impl Fn(&mut CallSite, K),
    ) {
        let mut counts: HashMap<K, u32> = HashMap::new();
        self.call_sites.iter().filter_map(&key).for_each(|key| *counts.entry(key).or_default() += 1);
        let mut known: HashMap<CallSite, u32> = HashMap::new();
        let mut numbers = Vec::new();
        for mut call_site in std::mem::take(&mut self.call_sites) {
            if let Some(key) = key(&call_site).filter(|key| counts[key] > max) {
                change(&mut call_site, key);
            }
            numbers.push(*known.entry(call_site).or_insert_with_key(|call_site| {
                self.call_sites.push(call_site.clone());
                self.call_sites.len() as u32 - 1
            }));
        }
        for requester in &mut self.requesters {
            if let Requester::CallSite(number) = requester {
                *number = numbers[*number as usize];
            }
        }
    }

    /// Whether the call site of any launch is known.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.requesters.iter().any(|requester| matches!(requester, Requester::CallSite(_)))
    }

    /// Whether a call site is in this language.
    pub(crate) fn have_language(&self, language: Language) -> bool {
        self.call_sites.iter().any(|call_site| call_site.language == language)
    }

    #[must_use]
    pub fn call_site_of(&self, launch: usize) -> Option<&CallSite> {
        self.number_of(launch).map(|number| self.call_site(number))
    }

    /// Returns the number of the call site of the launch at an index. Equal call sites have the
    /// same number.
    pub(crate) fn number_of(&self, launch: usize) -> Option<u32> {
        match self.requesters.get(launch)? {
            Requester::CallSite(number) => Some(*number),
            Requester::NoCaller | Requester::Unknown => None,
        }
    }

    pub(crate) fn call_site(&self, number: u32) -> &CallSite {
        &self.call_sites[number as usize]
    }

    /// Counts launches by call site.
    #[must_use]
    pub fn count(&self, launches: &[u32]) -> CallerCounts {
        let mut counts: HashMap<u32, u64> = HashMap::new();
        let mut unknown = 0;
        for launch in launches {
            match self.requesters.get(*launch as usize) {
                None | Some(Requester::NoCaller) => {}
                Some(Requester::Unknown) => unknown += 1,
                Some(Requester::CallSite(number)) => *counts.entry(*number).or_default() += 1,
            }
        }
        let mut counts: Vec<(u32, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(number, count)| (Reverse(*count), self.call_site(*number)));
        let shown = counts.len().min(MAX_CALL_SITES);
        let (largest, others) = counts.split_at(shown);
        CallerCounts {
            largest: largest.iter().map(|(number, count)| (self.call_site(*number).clone(), *count)).collect(),
            other_call_sites: others.len() as u64,
            others: others.iter().map(|(_, count)| count).sum(),
            unknown,
        }
    }
}

/// Lines of helper functions, each with its function. The call site of a launch by a helper is the
/// line that calls the helper, because that line decides what is launched.
pub(super) type Helpers<'a> = HashSet<Frame<'a>>;

/// What a launch executes: the program, and the subcommand if it has some.
type Program<'a> = (&'a [u8], Option<&'a [u8]>);

/// Finds helper functions, which launch on behalf of their callers: `run "$@"` in a shell,
/// `execute(command)` in Python. These are lines in functions at which different callers launch
/// different programs, or different subcommands of one. If all callers of a line launch the same
/// ones, the line names them itself.
fn helpers<'a>(forest: &Forest<'a>) -> Helpers<'a> {
    let mut programs: HashMap<StackId, HashSet<Program<'a>>> = HashMap::new();
    for (index, launch) in (0..).zip(&forest.launches) {
        // What a shell launches for the program is a program of its line.
        let wrapped = launch.execs.first().and_then(command_of).and_then(|_| wrapped_child(forest, index));
        let launched = wrapped.map_or(launch, |child| &forest.launches[child as usize]);
        if let (Some(stack), Some(exec)) = (launch.script_stack, launched.execs.last()) {
            programs.entry(stack).or_default().insert((launched.command.name, subcommand_of(exec)));
        }
    }
    let mut by_caller: HashMap<Frame<'a>, HashMap<Frame<'a>, HashSet<Program<'a>>>> = HashMap::new();
    for (stack, programs) in programs {
        let mut frames = forest.frames(Some(stack)).peekable();
        while let (Some(frame), Some(caller)) = (frames.next(), frames.peek()) {
            if frame.function.is_some() && frame.line.is_some() {
                by_caller.entry(frame).or_default().entry(*caller).or_default().extend(&programs);
            }
        }
    }
    by_caller.retain(|_, callers| {
        let mut sets = callers.values();
        sets.next().is_some_and(|first| sets.any(|other| other != first))
    });
    by_caller.into_keys().collect()
}

fn program_and_first_word(call_site: &CallSite) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
    Some((call_site.program.clone(), call_site.first_word()?.to_vec()))
}

fn line_of_makefile(call_site: &CallSite) -> Option<(Vec<u8>, u32)> {
    let is_make = call_site.language == Language::Make;
    is_make.then(|| Some((call_site.file.clone()?, call_site.line?)))?
}

/// Marks call sites in files that share their base name with another file.
fn mark_namesakes(call_sites: &mut [CallSite]) {
    let files: HashSet<Vec<u8>> = call_sites.iter().filter_map(|call_site| call_site.file.clone()).collect();
    let mut counts: HashMap<&[u8], u32> = HashMap::new();
    for file in &files {
        *counts.entry(base_name(file)).or_default() += 1;
    }
    for call_site in call_sites {
        let file = call_site.file.as_deref();
        call_site.has_namesake = file.is_some_and(|file| counts[base_name(file)] > 1);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerCounts {
    /// The call sites with the most launches, and their counts, largest first.
    pub largest: Vec<(CallSite, u64)>,
    pub other_call_sites: u64,
    /// Number of launches from these further call sites.
    pub others: u64,
    /// Number of launches without a known call site.
    pub unknown: u64,
}
