//! Where the edits of a finding are: the lines that request its launches, with everything that was recorded of the calls from each line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Edit, EditRefusal, Form, Rewrite, ShellRewrite};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::shared_line::arguments_of;
use crate::model::launch::Outcome;
use crate::patterns::shells::Dialect;
use spawnscope_data::event::Language;

/// Maximum number of lines that one finding edits.
pub(in crate::explain::advice) const MAX_EDITS: usize = 100;

/// A line of a shell script and all calls of a program from it.
pub(in crate::explain::advice) struct ShellSite {
    file: Vec<u8>,
    line: u32,
    directory: Option<Vec<u8>>,
    /// Whether the line is that of a recipe in a makefile.
    is_recipe: bool,
    /// All launches of the program from this line, also those that the finding does not contain: an edit changes them, too.
    pub(in crate::explain::advice) launches: Vec<u32>,
}

/// A line of a file, with the directory in which the script was started.
pub(in crate::explain::advice) type Key<'a> = (&'a [u8], u32, Option<&'a [u8]>);

/// Returns the lines of shell scripts that request launches of a program, those with the most launches first.
pub(in crate::explain::advice) fn shell_sites(
    context: &RuleContext<'_, '_>,
    program: &[u8],
    launches: &[u32],
) -> Vec<ShellSite> {
    let mut counts: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut recipes = BTreeSet::new();
    for (key, is_recipe) in launches.iter().filter_map(|index| key_of(context, *index)) {
        *counts.entry(key).or_default() += 1;
        recipes.extend(is_recipe.then_some(key));
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
    let mut keys: Vec<(Key<'_>, usize)> = counts.into_iter().collect();
    keys.sort_by_key(|(_, count)| Reverse(*count));
    keys.truncate(MAX_EDITS);
    let sites = keys.into_iter().map(|(key, _)| ShellSite {
        file: key.0.to_vec(),
        line: key.1,
        directory: key.2.map(<[u8]>::to_vec),
        is_recipe: recipes.contains(&key),
        launches: calls.remove(&key).unwrap_or_default(),
    });
    sites.collect()
}

/// Returns the line of a script from which a shell requested a launch, or of the recipe that make gave the shell, and whether it is a recipe. `None`
/// for scripts in other languages and without a file.
fn key_of<'g>(context: &RuleContext<'g, 'g>, index: u32) -> Option<(Key<'g>, bool)> {
    let call_site = context.callers.call_site(context.callers.number_of(index as usize)?);
    let recipe = context.sites.call_site_of(index as usize).filter(|site| site.language == Language::Make);
    let (call_site, is_recipe) = match recipe.filter(|_| call_site.file.is_none()) {
        Some(recipe) => (recipe, true),
        None => (call_site, false),
    };
    let is_shell = is_recipe || matches!(call_site.language, Language::Bash | Language::Dash);
    let directory = context.forest().launcher(index as usize).and_then(|shell| shell.cwd());
    is_shell.then_some(((call_site.file.as_deref()?, call_site.line?, directory), is_recipe))
}

impl ShellSite {
    /// Returns the edit of all calls from this line. `form` is the new code, and whether it is exact only for a text of one line.
    pub(in crate::explain::advice) fn edit(
        self,
        context: &RuleContext<'_, '_>,
        program: &[u8],
        form: Result<(Form, bool), EditRefusal>,
    ) -> Option<Edit> {
        self.edit_of(context, program, &self.launches, form)
    }

    /// Returns the edit of the calls that made these launches.
    pub(in crate::explain::advice) fn edit_of(
        &self,
        context: &RuleContext<'_, '_>,
        program: &[u8],
        launches: &[u32],
        form: Result<(Form, bool), EditRefusal>,
    ) -> Option<Edit> {
        let [mut calls, mut others] = [BTreeSet::new(), BTreeSet::new()];
        for index in &self.launches {
            let [exec] = &context.launch(*index).execs[..] else { return None };
            if exec.argv_cut {
                return None;
            }
            let call = arguments_of(exec).into_iter().map(|argument| argument.to_vec()).collect();
            if launches.contains(index) {
                calls.insert(call)
            } else {
                others.insert(call)
            };
        }
        let dialect = Dialect::of_parent(context.forest(), *self.launches.first()? as usize)?;
        let has_failures = launches
            .iter()
            .map(|index| context.launch(*index))
            .any(|launch| !matches!(launch.outcome, Outcome::Code(0) | Outcome::Unknown));
        let rewrite = form.map(|(form, needs_one_line)| {
            let program = program.to_vec();
            let rewrite = ShellRewrite { program, calls, form, needs_one_line, dialect, has_failures, others };
            if self.is_recipe { Rewrite::Recipe(rewrite) } else { Rewrite::Shell(rewrite) }
        });
        Some(Edit { file: self.file.clone(), directory: self.directory.clone(), line: self.line, rewrite })
    }
}
