//! A finding of a rule: launches that cost more than necessary, the evidence, and the fix. What it
//! says is in `recipes.tsv`, so that the code of a rule has only its conditions and its figures.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::Edit;
pub(crate) use crate::explain::advice::edit::OneCall;
use crate::explain::advice::phrases::{INPUTS, OR_ALL, forks, launches, name, time, times};
use crate::explain::advice::selection::options;
use crate::explain::advice::tables::{add_limit, recipe};
use crate::model::launch::Launch;
use crate::patterns::runtimes::{Runtime, shell_of_line};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// A finding of a rule: launches that cost more than necessary, and a fix.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Id of the rule, such as `needless-shell`.
    pub rule: &'static str,
    /// The problem, in one sentence without a full stop.
    pub title: String,
    /// The affected launches, by index.
    pub launches: Vec<u32>,
    /// Sentences with the measurements behind the finding.
    pub evidence: Vec<String>,
    /// Arguments of one of the affected launches.
    pub example: Vec<Vec<u8>>,
    /// The lines of the fix: sentences, or commands and code to type.
    pub fix: Vec<String>,
    /// The fix as edits of the lines that request the launches. Empty if the fix needs a decision
    /// of the user.
    pub edits: Vec<Edit>,
    /// How many of the launches execute a program.
    pub executed: u32,
    /// The line that requests most of the launches, as an edit that changes nothing.
    pub line: Option<Edit>,
    /// What the lines of the fix do not solve, or may break. Edits have limits of their own.
    pub limits: String,
    /// Options of `spawnscope whatif` that try the fix. Empty if no options select these launches.
    pub whatif: String,
    /// The fix as input of the replay.
    pub changes: Vec<AppliedChange>,
    /// How the saving is derived.
    pub basis: Basis,
    /// Whether the fix is not in the code that requests the launches, but in the machine, the
    /// environment, the launched program, or an option that the user passes.
    pub is_fixed_elsewhere: bool,
    /// Whether the predicted saving is only what the fix can save at most.
    pub is_at_most: bool,
    /// Whether it is unknown if the launched program or the parent can do what the fix says.
    pub is_guess: bool,
    /// What the fix passes to one call in place of several. `None` for other fixes.
    pub(crate) one_call: Option<OneCall>,
    /// Whether the fix was taken back. Any that is known to be possible, or has edits, is better.
    pub(crate) is_objected: bool,
    /// Whether the fix may save up to everything that depends on the launches, because the
    /// recording does not separate their start-up from their work.
    pub(crate) is_open: bool,
    /// Time of the launches that the fix keeps, although its change removes them.
    pub(crate) kept: Nanos,
    /// How much of the wall depends on the launches, as far as that was predicted.
    pub(crate) dependent: Nanos,
}

/// How a predicted saving is derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// The recording shows the time that the fix removes.
    #[default]
    Measured,
    /// A model estimates how much time remains after the fix.
    Modelled,
}

impl Finding {
    /// Returns the finding that the recipe with its id describes. Its example is the first of the
    /// launches with an exec.
    pub(super) fn of(
        context: &RuleContext<'_, '_>,
        rule: &'static str,
        launches: Vec<u32>,
        cases: &[&str],
        values: &[(&str, &str)],
    ) -> Finding {
        let example = context.example(&launches);
        Finding { rule, launches, example, ..Finding::default() }.recipe(context, rule, cases, values)
    }

    /// Adds any number of sentences of evidence.
    pub(super) fn evidence_lines(mut self, sentences: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(sentences);
        self
    }

    /// Adds the call sites, if they are known: the line that requested most of the launches.
    pub(super) fn with_call_sites(self, context: &RuleContext<'_, '_>) -> Finding {
        let counts = context.sites.count(&self.launches);
        let [(largest, count), others @ ..] = &counts.largest[..] else { return self };
        // The text of a line that code of another language passes to a shell.
        let is_text = largest.file.is_none() && shell_of_line(context.forest(), self.launches[0]).is_some();
        if others.is_empty() && (is_text || counts.unknown == 0) {
            let only = (!is_text).then(|| format!("call site: {}", name(&largest.label())));
            return self.evidence_lines(only);
        }
        let mut sentence = format!("launched from {} ({})", name(&largest.label()), times(*count as usize));
        let more = others.len() as u64 + counts.other_call_sites;
        if more > 0 {
            sentence.extend([" and ", &units::counted(more, "more line", "more lines")]);
        }
        if counts.unknown > 0 {
            sentence.extend(["; the line is unknown for ", &launches(counts.unknown as usize)]);
        }
        self.evidence_lines([sentence])
    }

    /// Adds any number of lines to the fix.
    pub(super) fn fix_lines<Line: Into<String>>(mut self, lines: impl IntoIterator<Item = Line>) -> Finding {
        self.fix.extend(lines.into_iter().map(Into::into));
        self
    }

    /// Adds what a recipe says in these cases, with these values. The runtime of the parent is
    /// another case. Other values are the names of the parent and of the program, and how often and
    /// how long it ran.
    pub(super) fn recipe(
        mut self,
        context: &RuleContext<'_, '_>,
        key: &str,
        cases: &[&str],
        values: &[(&str, &str)],
    ) -> Finding {
        let first = self.launches.first().copied();
        let names = |launch: &Launch<'_>| [launch.birth_command.name, launch.command.name].map(name);
        let [parent, program] = first.map(|first| names(context.launch(first))).unwrap_or_default();
        let runtime = first.map_or(String::new(), |first| format!("{:?}", Runtime::of_parent(context.forest(), first)));
        let count = self.launches.len();
        let common = [
            ("parent", parent),
            ("program", program),
            ("times", times(count)),
            ("launches", launches(count)),
            ("forks", forks(count)),
            ("spent", time(context.spent_on(&self.launches))),
        ];
        let common = common.iter().map(|(name, value)| (*name, &value[..]));
        let values: Vec<(&str, &str)> = values.iter().copied().chain(common).collect();
        let said = recipe(key, &[cases, &[&runtime]].concat(), &values);
        if !said.title.is_empty() {
            self.title = said.title;
        }
        said.properties.iter().for_each(|property| self.declare(property));
        self.evidence.extend(said.evidence);
        self.fix.extend(said.fix);
        add_limit(&mut self.limits, &said.limits);
        self
    }

    /// Sets a property that a recipe names.
    fn declare(&mut self, property: &str) {
        match property {
            "modelled" => self.basis = Basis::Modelled,
            "elsewhere" => self.is_fixed_elsewhere = true,
            "guess" => self.is_guess = true,
            "open" => self.is_open = true,
            "one-call" => self.one_call = Some(OneCall::Inputs),
            "one-call-of-items" => self.one_call = Some(OneCall::Items),
            "at-most" => self.is_at_most = true,
            "without-example" => self.example.clear(),
            _ => debug_assert!(false, "{property}"),
        }
    }

    /// Takes back what the fix says about one call in place of several, for a reason that makes it
    /// wrong.
    pub(super) fn object(&mut self, reason: &str) {
        self.fix.retain(|line| !line.contains(INPUTS));
        self.fix.iter_mut().for_each(|line| *line = line.replace(OR_ALL, ""));
        if self.one_call.take().is_some() {
            self.fix = vec![
                format!("{reason}, so one launch cannot do it for all: use one process that does all of this work"),
                "  a library, or a program with a mode for many jobs; or run several launches at a time".to_owned(),
            ];
            "the prediction is that of one launch, which does the work of all".clone_into(&mut self.limits);
            self.edits.clear();
            self.whatif.clear();
            (self.is_guess, self.is_objected) = (true, true);
        }
    }

    /// Sets the change from which the saving is predicted, and the `option` of `spawnscope whatif`
    /// that makes the same change. The change applies to all affected launches.
    pub(super) fn predicted_by(self, change: Change, option: impl Into<String>) -> Finding {
        let launches = self.launches.clone();
        self.predicted_by_all(vec![AppliedChange { change, launches }], option)
    }

    /// Sets the changes from which the saving is predicted, with the options that make them.
    pub(super) fn predicted_with(self, context: &RuleContext<'_, '_>, changes: Vec<AppliedChange>) -> Finding {
        let options = options(context, &changes);
        self.predicted_by_all(changes, options)
    }

    /// Sets a change of all affected launches from which the saving is predicted, with the options
    /// that make it.
    pub(super) fn predicted_as(self, context: &RuleContext<'_, '_>, change: Change) -> Finding {
        let launches = self.launches.clone();
        self.predicted_with(context, vec![AppliedChange { change, launches }])
    }

    /// Sets several changes from which the saving is predicted, and the `options` that make them.
    pub(super) fn predicted_by_all(mut self, changes: Vec<AppliedChange>, options: impl Into<String>) -> Finding {
        self.changes = changes;
        self.whatif = options.into();
        self
    }
}
