//! What a check says: findings with evidence, effect and fix, and what it could not see.

use super::checks::Check;
use crate::event::Nanos;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It makes launches dear, or fail, and something can be done.
    Problem,
    /// It explains figures, or costs little, or nobody can change it from here.
    Note,
}

impl Severity {
    /// The word in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Note => "note",
        }
    }
}

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The very thing was timed.
    Measured,
    /// Computed from times of its parts.
    Modelled,
}

impl Basis {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Basis::Measured => "measured",
            Basis::Modelled => "modelled",
        }
    }
}

/// By how much something takes longer here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The additional time.
    pub span: Nanos,
    /// What takes so much longer, such as `each launch`.
    pub of: &'static str,
    /// How that is known.
    pub basis: Basis,
    /// It is longer: what was timed did not come to its end.
    pub is_lower_bound: bool,
}

impl Effect {
    /// One that was timed.
    #[must_use]
    pub fn measured(span: Nanos, of: &'static str) -> Effect {
        Effect {
            span,
            of,
            basis: Basis::Measured,
            is_lower_bound: false,
        }
    }

    /// One that was computed.
    #[must_use]
    pub fn modelled(span: Nanos, of: &'static str) -> Effect {
        Effect {
            span,
            of,
            basis: Basis::Modelled,
            is_lower_bound: false,
        }
    }
}

/// Something that a check found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The id of the check.
    pub check: &'static str,
    /// What the check looked at.
    pub looked_at: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What is the matter, in a few words.
    pub title: String,
    /// What shows it: sentences.
    pub evidence: Vec<String>,
    /// What it costs; unknown where it cannot be measured here.
    pub effect: Option<Effect>,
    /// What can be done: sentences, and lines to type, which begin with two spaces.
    pub fix: Vec<String>,
    /// What the fix costs, or does not mend.
    pub fix_cost: String,
}

impl Finding {
    /// One that matters.
    pub fn problem(title: impl Into<String>) -> Finding {
        Finding::new(Severity::Problem, title.into())
    }

    /// One that only explains.
    pub fn note(title: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, title.into())
    }

    fn new(severity: Severity, title: String) -> Finding {
        Finding {
            check: "",
            looked_at: "",
            severity,
            title,
            evidence: Vec::new(),
            effect: None,
            fix: Vec::new(),
            fix_cost: String::new(),
        }
    }

    /// A problem if that holds, a note otherwise.
    pub fn problem_if(matters: bool, title: impl Into<String>) -> Finding {
        let severity = if matters { Severity::Problem } else { Severity::Note };
        Finding::new(severity, title.into())
    }

    /// Adds a sentence that shows it.
    #[must_use]
    pub fn evidence(mut self, sentence: impl Into<String>) -> Finding {
        self.evidence.push(sentence.into());
        self
    }

    /// Adds a sentence that shows it, where there is one.
    #[must_use]
    pub fn evidence_if(mut self, sentence: Option<String>) -> Finding {
        self.evidence.extend(sentence);
        self
    }

    /// Says what it costs.
    #[must_use]
    pub fn effect(mut self, effect: impl Into<Option<Effect>>) -> Finding {
        self.effect = effect.into();
        self
    }

    /// Adds a line of what can be done.
    #[must_use]
    pub fn fix(mut self, line: impl Into<String>) -> Finding {
        self.fix.push(line.into());
        self
    }

    /// Says what the fix costs.
    #[must_use]
    pub fn fix_cost(mut self, text: impl Into<String>) -> Finding {
        self.fix_cost = text.into();
        self
    }
}

/// Something that a check could not look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// The id of the check.
    pub check: &'static str,
    /// What, and why not.
    pub what: String,
}

/// What one check says.
pub struct Findings {
    check: &'static str,
    looked_at: &'static str,
    found: Vec<Finding>,
    unseen: Vec<Unseen>,
}

impl Findings {
    pub(super) fn of(check: &Check) -> Findings {
        Findings {
            check: check.id,
            looked_at: check.looks_at,
            found: Vec::new(),
            unseen: Vec::new(),
        }
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.found.push(Finding {
            check: self.check,
            looked_at: self.looked_at,
            ..finding
        });
    }

    /// Says what could not be looked at.
    pub fn unseen(&mut self, what: impl Into<String>) {
        self.unseen.push(Unseen {
            check: self.check,
            what: what.into(),
        });
    }

    pub(super) fn into_parts(self) -> (Vec<Finding>, Vec<Unseen>) {
        (self.found, self.unseen)
    }
}
