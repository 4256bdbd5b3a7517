//! Edits: how a fix rewrites the user's own script, makefile or package. What was recorded of the
//! calls and the new code are data; `Edit::splices` finds the calls in the text of the file and
//! replaces exactly them. It refuses whatever may change what the file does. Nothing here reads
//! files.

mod adjacent;
mod answers;
mod around;
mod collected;
mod command;
mod directories;
mod embedded;
mod form;
#[cfg(fuzzing)]
mod fuzzing;
mod launchers;
mod library;
mod lookup;
mod make_functions;
mod makefile;
mod many;
mod objections;
mod once;
mod one_line;
mod one_sed;
mod package;
mod perl;
mod python;
mod python_functions;
mod shell;
mod sites;
mod stages;
#[cfg(test)]
pub(super) mod tests;
mod wait;
mod zsh;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

#[cfg(fuzzing)]
pub use fuzzing::edit_for_fuzzing;

pub(crate) use form::OneCall;
pub(super) use form::{Form, NewCode, Operand};
pub(super) use library::{LibraryRewrite, Otherwise, has_library};
pub(super) use makefile::MakeRewrite;
pub(super) use many::one_process;
pub(super) use objections::to_launches;
pub(super) use one_line::answers_each_line;
pub(super) use one_sed::Filter;
pub(super) use package::{PackageRewrite, program_of_npx};
pub(super) use shell::ShellRewrite;
pub(super) use sites::{Host, Key, MAX_EDITS, ShellSite, is_success, line_in, shell_sites};

/// An edit of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file, as in the recording.
    pub file: Vec<u8>,
    /// The directory that a relative `file` starts from, if known.
    pub directory: Option<Vec<u8>>,
    /// The line that the recording names, from 1.
    pub line: u32,
    /// The lines of functions that this line calls, of which this edit makes others needless.
    pub(super) instead_of: Vec<u32>,
    /// How many of the finding's launches it is about; 0: all.
    pub launches: u32,
    /// How to rewrite the file, or why the recording shows that it must not be rewritten.
    pub(super) rewrite: Result<Rewrite>,
}

/// How to rewrite calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rewrite {
    /// Calls in shell code.
    Shell(ShellRewrite, Host),
    /// Variables of a makefile.
    Make(MakeRewrite),
    /// Variables of a makefile that another one includes.
    Included(makefile::IncludedRewrite),
    /// A recipe that makes the directory of its target.
    Directory,
    /// Scripts of a `package.json`.
    Package(PackageRewrite),
    /// The calls in a Python program that pass these commands to a shell.
    Python(BTreeSet<Vec<u8>>),
    /// Calls of small programs in a Python or Perl program.
    Library(LibraryRewrite),
}

/// A part of a file that an edit replaces. The range is empty for an insertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// The new text.
    pub text: Vec<u8>,
    /// What the new text changes besides the launches.
    pub limits: Vec<&'static str>,
}

/// An edit, looked up in the file of the user. The analysis reads no files, so whoever shows the
/// advice looks it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedLine {
    /// The file, as in the recording.
    pub file: Vec<u8>,
    /// The first line that changes, from 1.
    pub line: u32,
    /// The lines before and after the edit, or why the file is not edited. Lines that are only
    /// added have nothing before.
    pub change: Result<[Vec<Vec<u8>>; 2], String>,
}

/// Why a file is not edited, as a sentence without its beginning and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditRefusal(pub(super) String);

impl fmt::Display for EditRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The result of looking for an edit.
pub(super) type Result<T, E = EditRefusal> = std::result::Result<T, E>;

/// Returns an error with this reason.
fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(EditRefusal(reason.into()))
}

/// Refuses an edit with this reason if a condition holds.
fn refuse_if(is_refused: bool, reason: impl Into<String>) -> Result<()> {
    if is_refused { refuse(reason) } else { Ok(()) }
}

/// Refuses an edit if there is a reason.
fn refuse_for(reason: Option<String>) -> Result<()> {
    reason.map_or(Ok(()), refuse)
}

/// Returns a value, or an error with this reason if there is none.
fn or_refuse<T>(value: Option<T>, reason: impl Into<String>) -> Result<T> {
    value.ok_or_else(|| EditRefusal(reason.into()))
}

/// Returns the replacement of a part of a file.
fn splice(range: Range<usize>, text: impl Into<Vec<u8>>) -> Splice {
    Splice { range, text: text.into(), limits: Vec::new() }
}

/// Returns the insertion of a text at a position.
fn inserted(at: usize, text: impl Into<Vec<u8>>) -> Splice {
    splice(at..at, text)
}

/// Adds what an edit changes besides the launches.
fn limited(mut splices: Vec<Splice>, limits: &[&'static str]) -> Vec<Splice> {
    splices.first_mut().into_iter().for_each(|first| first.limits.extend(limits));
    splices
}

/// What one call for several inputs changes.
const FAILS_TOGETHER: &str = "if one fails, the others go on, even with `set -e`";

impl Edit {
    /// Returns the edit of a line, which is about this number of launches.
    pub(super) fn of((file, line, directory): Key<'_>, launches: usize, rewrite: Result<Rewrite>) -> Edit {
        let directory = directory.map(<[u8]>::to_vec);
        let launches = launches as u32;
        Edit { file: file.to_vec(), directory, line, instead_of: Vec::new(), launches, rewrite }
    }

    /// Returns the same edits for the makefiles that this one includes.
    fn included(&self, text: &[u8]) -> Vec<Edit> {
        let Ok(Rewrite::Make(rewrite)) = &self.rewrite else { return Vec::new() };
        let edit = |(file, rewrite)| Edit { file, rewrite: Ok(Rewrite::Included(rewrite)), ..self.clone() };
        rewrite.included(text).into_iter().map(edit).collect()
    }

    /// Whether one call takes the place of those of a loop, or a neighbour in a pipeline.
    #[must_use]
    pub fn is_of_loop(&self) -> bool {
        matches!(&self.rewrite, Ok(Rewrite::Shell(rewrite, _)) if matches!(rewrite.code.form, Form::Many | Form::Feed))
    }

    /// Whether a neighbour in a pipeline takes over the work.
    pub(super) fn is_of_stage(&self) -> bool {
        matches!(&self.rewrite, Ok(Rewrite::Shell(rewrite, _)) if rewrite.code.form == Form::Feed)
    }

    /// Returns an edit that changes nothing, for tests of how edits are shown.
    #[doc(hidden)]
    #[must_use]
    pub fn for_test(file: &[u8]) -> Edit {
        Edit::of((file, 1, None), 0, refuse("it is a test"))
    }

    /// Whether an edit that was applied changes this one's line, or makes this one needless.
    pub fn is_done_by(&self, applied: &Edit) -> bool {
        (&self.file, &self.directory) == (&applied.file, &applied.directory)
            && (self.line == applied.line || applied.instead_of.contains(&self.line))
    }

    /// Returns what is shown if the file is not edited. Nothing for one that another edit may
    /// replace.
    #[must_use]
    pub fn refused(&self, reason: String) -> Option<EditedLine> {
        let line = EditedLine { file: self.file.clone(), line: self.line, change: Err(reason) };
        self.instead_of.is_empty().then_some(line)
    }

    /// Returns the same edit for a text in which its line has another number.
    #[must_use]
    pub fn at(&self, line: u32) -> Edit {
        Edit { line, ..self.clone() }
    }

    /// Returns the parts of the file to replace, in the order of their positions. They do not
    /// overlap.
    ///
    /// # Errors
    /// Why the file is not edited.
    pub fn splices(&self, text: &[u8]) -> Result<Vec<Splice>> {
        let splices = match self.rewrite.as_ref().map_err(Clone::clone)? {
            Rewrite::Shell(rewrite, Host::Script) => rewrite.splices(text, Some(self.line))?,
            Rewrite::Shell(rewrite, Host::Recipe) => embedded::in_recipe(rewrite, text, self.line)?,
            Rewrite::Shell(rewrite, Host::Package(command)) => embedded::in_package(rewrite, command, text)?,
            Rewrite::Make(rewrite) => rewrite.splices(text)?,
            Rewrite::Included(rewrite) => rewrite.splices(text)?,
            Rewrite::Directory => directories::splices(text, self.line)?,
            Rewrite::Package(rewrite) => rewrite.splices(text)?,
            Rewrite::Python(commands) => python::without_shell(commands, text, self.line)?,
            Rewrite::Library(rewrite) => rewrite.splices(text, self.line)?,
        };
        in_order(splices)
    }
}

/// Adds the edits of the makefiles that the files of edits include. One that changes nothing itself
/// is left out then.
pub(super) fn add_included(edits: &mut Vec<Edit>, text_of: &mut dyn FnMut(&Edit) -> Option<Vec<u8>>) {
    for edit in std::mem::take(edits) {
        let text = text_of(&edit).unwrap_or_default();
        let can_apply = |other: &Edit| text_of(other).is_some_and(|text| other.splices(&text).is_ok());
        let included: Vec<Edit> = edit.included(&text).into_iter().filter(can_apply).collect();
        let is_needed = included.is_empty() || edit.splices(&text).is_ok();
        edits.extend(is_needed.then_some(edit).into_iter().chain(included));
    }
}

/// Sorts the parts that an edit replaces.
fn in_order(mut splices: Vec<Splice>) -> Result<Vec<Splice>> {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    // Two equal calls of a line are asked once.
    splices.dedup();
    let overlap = splices.windows(2).any(|two| two[0].range.end > two[1].range.start);
    if overlap { refuse("one of the calls is an argument of another one") } else { Ok(splices) }
}

/// Returns where the line of a position begins.
fn line_start(text: &[u8], at: usize) -> usize {
    text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}

/// Returns where the line of a position ends, without its newline.
fn line_end(text: &[u8], at: usize) -> usize {
    let at = at.min(text.len());
    text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length)
}

/// Returns the part of a text that is different in another one.
fn difference(before: &[u8], after: &[u8]) -> Splice {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let ends = before[start..].iter().rev().zip(after[start..].iter().rev());
    let end = ends.take_while(|(one, other)| one == other).count();
    splice(start..before.len() - end, after[start..after.len() - end].to_vec())
}

/// Replaces parts of a text.
#[must_use]
pub fn spliced(text: &[u8], splices: &[Splice]) -> Vec<u8> {
    let mut result = Vec::new();
    let mut at = 0;
    for splice in splices {
        result.extend(&text[at..splice.range.start]);
        result.extend(&splice.text);
        at = splice.range.end;
    }
    result.extend(&text[at..]);
    result
}
