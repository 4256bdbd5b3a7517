//! Where the edits of a finding are: the lines that request its launches, with everything that was
//! recorded of the calls from each line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Edit, EditRefusal, NewCode, Rewrite, ShellRewrite};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::shared_line::arguments_of;
use crate::model::launch::{Launch, Outcome};
use crate::patterns::package_scripts::ScriptCall;
use crate::patterns::programs::has_property;
use crate::patterns::shells::{Dialect, command_of};
use crate::sites::callers::Callers;
use spawnscope_data::event::Language;

/// Maximum number of lines that one finding edits.
pub(in crate::explain::advice) const MAX_EDITS: usize = 100;

/// A line of a shell script and all calls of a program from it.
pub(in crate::explain::advice) struct ShellSite<'g> {
    key: Key<'g>,
    host: Host,
    /// All launches of the program from this line, also those that the finding does not contain: an
    /// edit changes them, too.
    pub(in crate::explain::advice) launches: Vec<u32>,
    /// The programs of which a launch from this file failed.
    failed: BTreeSet<Vec<u8>>,
}

/// What a line of shell code is part of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::explain::advice) enum Host {
    Script,
    /// A recipe of a makefile.
    Recipe,
    /// A script of `package.json`, with this text.
    Package(Vec<u8>),
}

/// A line of a file, with the directory in which the script was started.
pub(in crate::explain::advice) type Key<'a> = (&'a [u8], u32, Option<&'a [u8]>);

/// Returns the lines of shell scripts that request launches of a program, those with the most
/// launches first.
pub(in crate::explain::advice) fn shell_sites<'g>(
    context: &RuleContext<'g, 'g>,
    program: &[u8],
    launches: &[u32],
) -> Vec<ShellSite<'g>> {
    let mut counts: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut hosts = BTreeMap::new();
    for (key, host) in launches.iter().filter_map(|index| key_of(context, *index)) {
        *counts.entry(key).or_default() += 1;
        hosts.insert(key, host);
    }
    if counts.is_empty() {
        return Vec::new();
    }
    let mut calls: BTreeMap<Key<'_>, Vec<u32>> = BTreeMap::new();
    for (index, _) in context.launched().filter(|(_, launch)| launch.command.name == program) {
        if let Some((key, _)) = key_of(context, index).filter(|(key, _)| counts.contains_key(key)) {
            calls.entry(key).or_default().push(index);
        }
    }
    let failed = context.launched().filter(|(_, launch)| !is_success(launch) && launch.command.name != program);
    let failed: Vec<(Vec<u8>, Vec<u8>)> = failed
        .filter_map(|(index, launch)| Some((key_of(context, index)?.0.0.to_vec(), launch.command.name.to_vec())))
        .collect();
    let mut keys: Vec<(Key<'_>, usize)> = counts.into_iter().collect();
    keys.sort_by_key(|(_, count)| Reverse(*count));
    keys.truncate(MAX_EDITS);
    let sites = keys.into_iter().map(|(key, _)| ShellSite {
        key,
        host: hosts.remove(&key).unwrap_or(Host::Script),
        launches: calls.remove(&key).unwrap_or_default(),
        failed: failed.iter().filter(|(file, _)| file == key.0).map(|(_, program)| program.clone()).collect(),
    });
    sites.collect()
}

/// Returns the language and the line of the call site of a launch.
pub(in crate::explain::advice) fn line_in<'g>(
    context: &RuleContext<'g, '_>,
    callers: &'g Callers,
    index: u32,
) -> Option<(Language, Key<'g>)> {
    let site = callers.call_site_of(index as usize)?;
    let directory = context.forest().launcher(index as usize).and_then(|program| program.cwd());
    Some((site.language, (site.file.as_deref()?, site.line?, directory)))
}

/// Returns the line of a script from which a shell requested a launch, or of the recipe that make
/// gave the shell, or the script of a package. `None` for scripts in other languages and without a
/// file.
fn key_of<'g>(context: &RuleContext<'g, 'g>, index: u32) -> Option<(Key<'g>, Host)> {
    let forest = context.forest();
    if let Some((language, key)) = line_in(context, context.callers, index) {
        return matches!(language, Language::Bash | Language::Dash | Language::Zsh).then_some((key, Host::Script));
    }
    if let Some((Language::Make, key)) = line_in(context, context.sites, index) {
        return Some((key, Host::Recipe));
    }
    let of_package = |launch: usize| {
        let command = forest.launches[launch].execs.first().and_then(command_of)?;
        let runner = ScriptCall::of(forest, forest.parent(launch)? as u32)?;
        runner.script().map(|_| command.to_vec())
    };
    let command = forest.ancestors(index as usize).find_map(of_package)?;
    let directory = forest.launcher(index as usize).and_then(|shell| shell.cwd());
    Some(((b"package.json", 1, directory), Host::Package(command)))
}

pub(in crate::explain::advice) fn is_success(launch: &Launch<'_>) -> bool {
    matches!(launch.outcome, Outcome::Code(0) | Outcome::Unknown)
}

impl ShellSite<'_> {
    /// Returns the edit of all calls from this line.
    pub(in crate::explain::advice) fn edit(
        self,
        context: &RuleContext<'_, '_>,
        program: &[u8],
        code: Result<NewCode, EditRefusal>,
    ) -> Option<Edit> {
        self.edit_of(context, program, &self.launches, code)
    }

    /// Returns the edit of the calls that made these launches, which ascend.
    pub(in crate::explain::advice) fn edit_of(
        &self,
        context: &RuleContext<'_, '_>,
        program: &[u8],
        launches: &[u32],
        code: Result<NewCode, EditRefusal>,
    ) -> Option<Edit> {
        let [mut calls, mut others] = [BTreeSet::new(), BTreeSet::new()];
        for index in &self.launches {
            let [exec] = &context.launch(*index).execs[..] else { return None };
            if exec.argv_cut {
                return None;
            }
            let call = arguments_of(exec).into_iter().map(|argument| argument.to_vec()).collect();
            let is_own = launches.binary_search(index).is_ok();
            if is_own { &mut calls } else { &mut others }.insert(call);
        }
        let dialect = Dialect::of_parent(context.forest(), *self.launches.first()? as usize)?;
        let mut all = launches.iter().map(|index| context.launch(*index));
        let has_failures = all.clone().any(|launch| !is_success(launch));
        let has_errors = all.any(|launch| {
            !is_success(launch) && (launch.outcome != Outcome::Code(1) || !has_property(program, "status"))
        });
        let is_distinct = calls.len() == launches.len();
        let rewrite = code.map(|code| ShellRewrite {
            program: program.to_vec(),
            calls,
            code,
            dialect,
            has_failures,
            has_errors,
            others,
            is_distinct,
            failed: self.failed.clone(),
        });
        let rewrite = rewrite.map(|rewrite| Rewrite::Shell(rewrite, self.host.clone()));
        Some(Edit::of(self.key, launches.len(), rewrite))
    }
}
