//! The rows of the table `doctor`: what one examination of a machine found, and what could not be examined.

use crate::doctor::{Diagnosis, Finding, NotExamined};

/// What is written of an examination.
#[derive(Clone, Copy)]
pub struct Examination<'a> {
    /// What identifies it.
    pub id: &'a str,
    /// When it was made.
    pub examined_unix_ns: i64,
    /// The machine's name.
    pub host: &'a str,
    /// `uname -r`.
    pub kernel: &'a str,
    /// What was found.
    pub diagnosis: &'a Diagnosis,
}

/// A row.
pub(super) struct DoctorLine<'a> {
    pub(super) of: &'a Examination<'a>,
    /// Its place in the examination, from 1.
    pub(super) place: i32,
    pub(super) found: Found<'a>,
}

/// What a row is about.
pub(super) enum Found<'a> {
    Finding(&'a Finding),
    Unseen(&'a NotExamined),
    /// Nothing was found, and nothing was left out.
    Nothing,
}

impl<'a> Examination<'a> {
    /// Returns the findings, and then what could not be examined. There is always a row, since it says that the machine was examined.
    pub(super) fn lines(&'a self) -> Vec<DoctorLine<'a>> {
        let findings = self.diagnosis.findings.iter().map(Found::Finding);
        let unseen = self.diagnosis.not_examined.iter().map(Found::Unseen);
        let mut found: Vec<Found<'a>> = findings.chain(unseen).collect();
        if found.is_empty() {
            found.push(Found::Nothing);
        }
        let line = |(place, found)| DoctorLine { of: self, place, found };
        (1..).zip(found).map(line).collect()
    }
}

impl<'a> DoctorLine<'a> {
    /// The finding, if there is one.
    pub(super) fn finding(&self) -> Option<&'a Finding> {
        match self.found {
            Found::Finding(finding) => Some(finding),
            Found::Unseen(_) | Found::Nothing => None,
        }
    }
}
