//! The findings of a check, each with evidence, effect and fix, and a list of what the check could
//! not examine.

use super::checks::Check;
use spawnscope_data::event::Nanos;

spawnscope_data::named_enum! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// The finding makes launches slow or makes them fail, and a fix exists.
        Problem = "problem",
        /// The finding explains a figure, costs little, or cannot be changed from here.
        #[default]
        Note = "note",
    }
}

spawnscope_data::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Basis {
        Measured = "measured",
        /// The cost was computed from the times of its parts.
        Modelled = "modelled",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    pub span: Nanos,
    /// What takes longer by `span`, such as `each launch`.
    pub affected: &'static str,
    pub basis: Basis,
    /// Whether `span` is only a lower bound, because the timed program was killed before it ended.
    pub is_lower_bound: bool,
}

impl Effect {
    pub fn measured(span: Nanos, affected: &'static str) -> Effect {
        Effect { span, affected, basis: Basis::Measured, is_lower_bound: false }
    }

    pub fn modelled(span: Nanos, affected: &'static str) -> Effect {
        Effect { span, affected, basis: Basis::Modelled, is_lower_bound: false }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Finding {
    pub check: &'static str,
    pub examined: &'static str,
    pub severity: Severity,
    pub title: String,
    pub evidence: Vec<String>,
    /// The time that the finding costs; unknown if it cannot be measured here.
    pub effect: Option<Effect>,
    /// What can be done: sentences, and commands to type. Lines with commands begin with two
    /// spaces.
    pub fix: Vec<String>,
    /// What the fix costs, or which problem remains.
    pub fix_cost: String,
}

impl Finding {
    pub fn problem(title: impl Into<String>) -> Finding {
        Finding { severity: Severity::Problem, ..Finding::note(title) }
    }

    pub fn note(title: impl Into<String>) -> Finding {
        Finding { title: title.into(), ..Finding::default() }
    }

    pub fn problem_if(matters: bool, title: impl Into<String>) -> Finding {
        if matters { Finding::problem(title) } else { Finding::note(title) }
    }

    #[must_use]
    pub fn evidence(mut self, sentence: impl Into<String>) -> Finding {
        self.evidence.push(sentence.into());
        self
    }

    #[must_use]
    pub fn evidence_if(mut self, sentence: Option<String>) -> Finding {
        self.evidence.extend(sentence);
        self
    }

    #[must_use]
    pub fn effect(mut self, effect: impl Into<Option<Effect>>) -> Finding {
        self.effect = effect.into();
        self
    }

    #[must_use]
    pub fn fix(mut self, line: impl Into<String>) -> Finding {
        self.fix.push(line.into());
        self
    }

    #[must_use]
    pub fn fix_cost(mut self, text: impl Into<String>) -> Finding {
        self.fix_cost = text.into();
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotExamined {
    pub check: &'static str,
    pub what: String,
}

pub struct Findings {
    check: &'static str,
    examined: &'static str,
    pub(super) found: Vec<Finding>,
    pub(super) not_examined: Vec<NotExamined>,
}

impl Findings {
    pub(super) fn for_check(check: &Check) -> Findings {
        Findings { check: check.id, examined: check.examines, found: Vec::new(), not_examined: Vec::new() }
    }

    pub fn add(&mut self, finding: Finding) {
        self.found.push(Finding { check: self.check, examined: self.examined, ..finding });
    }

    pub fn add_not_examined(&mut self, what: impl Into<String>) {
        self.not_examined.push(NotExamined { check: self.check, what: what.into() });
    }
}
