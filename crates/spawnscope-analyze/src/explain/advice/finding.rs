//! A finding of a rule: launches that cost more than necessary, the evidence, and the fix. Rules
//! build a finding with methods that add one sentence or line each.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::Edit;
pub(crate) use crate::explain::advice::edit::OneCall;
use crate::explain::advice::phrases::{INPUTS, OR_ALL};
use crate::explain::advice::selection::options;
use crate::explain::advice::tables::recipe;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// Begins a line of a recipe that is a limit.
const CAVEAT: &str = "caveat: ";

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
    /// The call site of the example, if it is known and the finding has other call sites, too.
    pub example_call_site: Option<String>,
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
    /// Returns a finding whose saving the recording shows.
    pub(super) fn measured(rule: &'static str, title: impl Into<String>, launches: Vec<u32>) -> Finding {
        Finding { rule, title: title.into(), launches, ..Finding::default() }
    }

    /// Returns a finding whose saving a model estimates.
    pub(super) fn modelled(rule: &'static str, title: impl Into<String>, launches: Vec<u32>) -> Finding {
        Finding { basis: Basis::Modelled, ..Finding::measured(rule, title, launches) }
    }

    /// Adds a sentence of evidence.
    pub(super) fn evidence(mut self, sentence: impl Into<String>) -> Finding {
        self.evidence.push(sentence.into());
        self
    }

    /// Adds any number of sentences of evidence.
    pub(super) fn evidence_lines(mut self, sentences: impl IntoIterator<Item = String>) -> Finding {
        self.evidence.extend(sentences);
        self
    }

    /// Sets the example: the arguments of the first affected launch with an exec.
    pub(super) fn with_example(mut self, context: &RuleContext<'_, '_>) -> Finding {
        self.example = context.example(&self.launches);
        self
    }

    /// Adds any number of lines to the fix.
    pub(super) fn fix_lines<Line: Into<String>>(mut self, lines: impl IntoIterator<Item = Line>) -> Finding {
        self.fix.extend(lines.into_iter().map(Into::into));
        self
    }

    /// Adds the lines of a recipe to the fix, and its caveats to the limits.
    pub(super) fn recipe(mut self, key: &str, cases: &[&str], values: &[(&str, &str)]) -> Finding {
        let is_limit = |line: &mut String| line.starts_with(CAVEAT);
        let mut lines = recipe(key, cases, values);
        let limits = lines.extract_if(.., is_limit).map(|line| line[CAVEAT.len()..].to_owned());
        let limits = Some(self.limits).filter(|limits| !limits.is_empty()).into_iter().chain(limits);
        self.limits = limits.collect::<Vec<_>>().join("; ");
        self.fix_lines(lines)
    }

    /// Sets the edits that apply the fix.
    pub(super) fn edits(mut self, edits: Vec<Edit>) -> Finding {
        self.edits = edits;
        self
    }

    /// Declares that the fix is not in the code that requests the launches.
    pub(super) fn fixed_elsewhere(mut self) -> Finding {
        self.is_fixed_elsewhere = true;
        self
    }

    /// Declares that it is unknown whether the fix is possible.
    pub(super) fn guessed(mut self) -> Finding {
        self.is_guess = true;
        self
    }

    /// Declares that one call gets everything that several calls got.
    pub(super) fn one_call(mut self, one_call: OneCall) -> Finding {
        self.one_call = Some(one_call);
        self
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

    /// Sets what the fix does not solve, or may break.
    pub(super) fn limits(mut self, text: impl Into<String>) -> Finding {
        self.limits = text.into();
        self
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
