//! The rows of the table `doctor`: what one examination of a machine found, and what could not be examined.

use crate::doctor::{Diagnosis, Finding, NotExamined};

/// The data of an examination that is written to a dataset.
#[derive(Clone, Copy)]
pub struct Examination<'a> {
    /// Identifies the examination.
    pub id: &'a str,
    /// Time of the examination, in nanoseconds since 1970 UTC.
    pub examined_unix_ns: i64,
    /// The machine's name.
    pub host: &'a str,
    /// `uname -r`.
    pub kernel: &'a str,
    /// The findings, and what could not be examined.
    pub diagnosis: &'a Diagnosis,
}

/// A row of the table.
pub(super) struct DoctorRow<'a> {
    pub(super) examination: &'a Examination<'a>,
    /// The position of the row in the examination, from 1.
    pub(super) position: i32,
    pub(super) subject: RowSubject<'a>,
}

/// What a row is about.
pub(super) enum RowSubject<'a> {
    Finding(&'a Finding),
    NotExamined(&'a NotExamined),
    /// Nothing was found, and everything could be examined.
    Nothing,
}

impl<'a> Examination<'a> {
    /// Returns the findings, and then what could not be examined. There is always at least one row, which shows that the machine was examined.
    pub(super) fn rows(&'a self) -> Vec<DoctorRow<'a>> {
        let findings = self.diagnosis.findings.iter().map(RowSubject::Finding);
        let not_examined = self.diagnosis.not_examined.iter().map(RowSubject::NotExamined);
        let mut subjects: Vec<RowSubject<'a>> = findings.chain(not_examined).collect();
        if subjects.is_empty() {
            subjects.push(RowSubject::Nothing);
        }
        (1..).zip(subjects).map(|(position, subject)| DoctorRow { examination: self, position, subject }).collect()
    }
}

impl<'a> DoctorRow<'a> {
    /// Returns the finding, if the row has one.
    pub(super) fn finding(&self) -> Option<&'a Finding> {
        match self.subject {
            RowSubject::Finding(finding) => Some(finding),
            RowSubject::NotExamined(_) | RowSubject::Nothing => None,
        }
    }
}
