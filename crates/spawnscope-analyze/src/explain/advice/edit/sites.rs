//! Where the edits of a finding are: the lines that request its launches, with everything that was
//! recorded of the calls from each line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Edit, NewCode, Result, Rewrite, ShellRewrite};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::shared_line::arguments_of;
use crate::model::launch::{Launch, Outcome};
use crate::patterns::package_scripts::runs_script;
use crate::patterns::programs::has_property;
use crate::patterns::shells::{Dialect, command_of};
use crate::sites::callers::Callers;
use spawnscope_data::event::Language;

/// Maximum number of lines that one finding edits.
pub(crate) const MAX_EDITS: usize = 100;

/// A line of a shell script and all calls of a program from it.
pub(crate) struct ShellSite<'g> {
    key: Key<'g>,
    host: Host,
    /// All launches of the program from this line, also those that the finding does not contain: an
    /// edit changes them, too.
    pub(crate) launches: Vec<u32>,
    /// The programs of which a launch from this file failed.
    failed: BTreeSet<Vec<u8>>,
}

/// What a line of shell code is part of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    Script,
    /// A recipe of a makefile.
    Recipe,
    /// A script of `package.json`, with this text.
    Package(Vec<u8>),
}

/// A line of a file, with the directory in which the script was started.
pub(crate) type Key<'a> = (&'a [u8], u32, Option<&'a [u8]>);

/// Returns the lines of shell scripts that request launches of a program, those with the most
/// launches first.
pub(crate) fn shell_sites<'g>(context: &RuleContext<'g, 'g>, program: &[u8], launches: &[u32]) -> Vec<ShellSite<'g>> {
    let mut sites: BTreeMap<Key<'_>, (usize, ShellSite<'_>)> = BTreeMap::new();
    for (key, host) in launches.iter().filter_map(|index| key_of(context, *index)) {
        let site = ShellSite { key, host: host.clone(), launches: Vec::new(), failed: BTreeSet::new() };
        let (count, site) = sites.entry(key).or_insert((0, site));
        *count += 1;
        site.host = host;
    }
    if sites.is_empty() {
        return Vec::new();
    }
    let mut failed: BTreeMap<&[u8], BTreeSet<Vec<u8>>> = BTreeMap::new();
    let is_of_program = |launch: &Launch<'_>| launch.command.name == program;
    for (index, launch) in context.launched().filter(|(_, launch)| is_of_program(launch) || !is_success(launch)) {
        let Some((key, _)) = key_of(context, index) else { continue };
        if !is_of_program(launch) {
            failed.entry(key.0).or_default().insert(launch.command.name.to_vec());
        } else if let Some((_, site)) = sites.get_mut(&key) {
            site.launches.push(index);
        }
    }
    let mut sites: Vec<(usize, ShellSite<'_>)> = sites.into_values().collect();
    sites.sort_by_key(|(count, _)| Reverse(*count));
    let failed_in = |file| failed.get(file).cloned().unwrap_or_default();
    let sites = sites.into_iter().take(MAX_EDITS);
    sites.map(|(_, site)| ShellSite { failed: failed_in(site.key.0), ..site }).collect()
}

/// Returns the language and the line of the call site of a launch.
pub(crate) fn line_in<'g>(
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
        runs_script(forest, forest.parent(launch)?).then(|| command.to_vec())
    };
    let command = forest.ancestors(index as usize).find_map(of_package)?;
    let directory = forest.launcher(index as usize).and_then(|shell| shell.cwd());
    Some(((b"package.json", 1, directory), Host::Package(command)))
}

pub(crate) fn is_success(launch: &Launch<'_>) -> bool {
    matches!(launch.outcome, Outcome::Code(0) | Outcome::Unknown)
}

impl ShellSite<'_> {
    /// Returns the edit of the calls that made these launches, which ascend.
    pub(crate) fn edit_of(
        &self,
        context: &RuleContext<'_, '_>,
        program: &[u8],
        launches: &[u32],
        code: Result<NewCode>,
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
