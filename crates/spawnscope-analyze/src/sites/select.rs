//! Selectors of launches: `dirname`, `argv=*--version*`, `parent=python3*`, `line=unpack.sh:14`, or
//! several terms separated by commas, which must all match.

use globset::{GlobBuilder, GlobMatcher};

use crate::model::launch::Command;
use crate::model::tree::Forest;
use crate::patterns::words::is_end_of;
use crate::sites::callers::{CallSite, Callers, Detail};

#[derive(Clone, Debug)]
pub struct Selector {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
enum Term {
    /// Base name of the program that the launch ran, or `(bash)` for a fork of bash, even if bash
    /// was running a `#!` script. The prefix `command=` is optional.
    Program(GlobMatcher),
    /// The arguments of any exec of the launch, joined by spaces.
    Argv(GlobMatcher),
    /// Base name of the parent's program: of the file that it executed or, for a `#!` script, of
    /// the interpreter.
    Parent(GlobMatcher),
    /// The call site of the launch, in the format of `report --by line`.
    Line(LinePattern),
}

/// A file, optionally with a range of lines.
#[derive(Clone, Debug)]
struct LinePattern {
    /// The last components of the path.
    file: Vec<u8>,
    /// The first and the last line.
    lines: Option<(u32, u32)>,
}

/// Why a selector is invalid, or cannot be applied to a recording.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The selector, or a term in it, is empty.
    #[error("`{0}` has an empty term: name a program, as in `dirname`, or use argv=GLOB, parent=GLOB or line=FILE:N")]
    Empty(String),
    /// The pattern is invalid.
    #[error("`{pattern}` is not a valid pattern: {reason}")]
    Glob { pattern: String, reason: String },
    /// The word before `=` is unknown.
    #[error(
        "launches cannot be selected by `{0}`: use a program's name, command=GLOB, argv=GLOB, parent=GLOB or line=FILE:N"
    )]
    Key(String),
    /// A range of lines ends before it starts.
    #[error("`line={0}` is an empty range: give the first line first, as in line=FILE:4-6")]
    Reversed(String),
    /// No launch of the recording has a call site.
    #[error(
        "`{0}` selects launches by line, but this recording contains no call sites: use a program's name, argv=GLOB or parent=GLOB"
    )]
    Line(String),
}

impl Selector {
    /// Parses a selector.
    ///
    /// # Errors
    /// Fails when a term is empty or invalid, or starts with an unknown key.
    pub fn parse(text: &str) -> Result<Selector, SelectError> {
        let terms: Result<Vec<Term>, SelectError> = text.split(',').map(|term| Term::parse(term, text)).collect();
        Ok(Selector { text: text.to_owned(), terms: terms? })
    }

    /// Returns the selector as typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a term selects by call site.
    #[must_use]
    pub fn is_by_line(&self) -> bool {
        self.terms.iter().any(|term| matches!(term, Term::Line(_)))
    }

    /// Returns the indices of the selected launches, ascending.
    ///
    /// # Errors
    /// Fails when a term selects by line and no launch has a call site.
    pub fn select(&self, forest: &Forest<'_>) -> Result<Vec<u32>, SelectError> {
        let callers = self.is_by_line().then(|| Callers::find(forest, Detail::Line));
        if callers.as_ref().is_some_and(|callers| !callers.has_any()) {
            return Err(SelectError::Line(self.text.clone()));
        }
        let launches = (0..).zip(&forest.launches);
        let selected = launches.filter(|(index, launch)| {
            let call_site = callers.as_ref().and_then(|callers| callers.call_site_of(*index as usize));
            launch.is_launch() && self.terms.iter().all(|term| term.holds(forest, *index, call_site))
        });
        Ok(selected.map(|(index, _)| index).collect())
    }

    /// Finds the launches that a selected line requested indirectly, through functions or sourced
    /// files. Returns their most frequent call site and their number; `None` if there are none.
    /// Explains why no launch was selected.
    #[must_use]
    pub fn called_from(&self, forest: &Forest<'_>) -> Option<(String, u64)> {
        let launches = (0..).zip(&forest.launches).filter(|(index, launch)| {
            let mut terms = self.terms.iter();
            launch.is_launch() && terms.all(|term| term.holds_in_chain(forest, *index))
        });
        let launches: Vec<u32> = launches.map(|(index, _)| index).collect();
        let counts = Callers::find(forest, Detail::Line).count(&launches);
        let (call_site, _) = counts.largest.first()?;
        Some((String::from_utf8_lossy(&call_site.short_label()).into_owned(), launches.len() as u64))
    }
}

impl Term {
    fn parse(term: &str, selector: &str) -> Result<Term, SelectError> {
        match term.split_once('=').unwrap_or(("command", term)) {
            (_, "") => Err(SelectError::Empty(selector.to_owned())),
            ("command", pattern) => Ok(Term::Program(glob(pattern)?)),
            ("argv", pattern) => Ok(Term::Argv(glob(pattern)?)),
            ("parent", pattern) => Ok(Term::Parent(glob(pattern)?)),
            ("line", call_site) => LinePattern::parse(call_site).map(Term::Line),
            (key, _) => Err(SelectError::Key(key.to_owned())),
        }
    }

    fn holds(&self, forest: &Forest<'_>, index: u32, call_site: Option<&CallSite>) -> bool {
        let launch = &forest.launches[index as usize];
        match self {
            Term::Line(pattern) => {
                call_site.is_some_and(|call_site| pattern.holds(call_site.file.as_deref(), call_site.line))
            }
            Term::Program(glob) => {
                let Command { name, forked } = *launch.command;
                !forked && matches(glob, name)
                    || forked && matches(glob, &launch.command.label())
                    || launch.execs.iter().any(|exec| matches(glob, exec.file_name()))
                    || (forked && matches(glob, &[b"(", program_of_parent(forest, index), b")"].concat()))
            }
            Term::Argv(glob) => launch.execs.iter().any(|exec| {
                let argv: Vec<&[u8]> = exec.arguments().collect();
                matches(glob, &argv.join(&b' '))
            }),
            Term::Parent(glob) => {
                launch.parent.get().is_some()
                    && (matches(glob, launch.birth_command.name) || matches(glob, program_of_parent(forest, index)))
            }
        }
    }

    /// Like `holds`, but any frame of the call chain may match a line.
    fn holds_in_chain(&self, forest: &Forest<'_>, index: u32) -> bool {
        match self {
            Term::Line(pattern) => {
                let launch = &forest.launches[index as usize];
                let mut frames = forest.frames(launch.best_stack());
                frames.any(|frame| pattern.holds(frame.file, frame.line))
            }
            _ => self.holds(forest, index, None),
        }
    }
}

impl LinePattern {
    /// Parses `unpack.sh:14`, `unpack.sh:10-20` or `unpack.sh`. Anything that is not a line number
    /// belongs to the file name.
    fn parse(text: &str) -> Result<LinePattern, SelectError> {
        let numbers = text.rsplit_once(':').and_then(|(file, lines)| {
            let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
            Some((file, (first.parse().ok()?, last.parse().ok()?)))
        });
        let (file, lines) = match numbers {
            Some((_, (first, last))) if first > last => return Err(SelectError::Reversed(text.to_owned())),
            Some((file, lines)) => (file, Some(lines)),
            None => (text, None),
        };
        Ok(LinePattern { file: file.strip_prefix("./").unwrap_or(file).as_bytes().to_vec(), lines })
    }

    fn holds(&self, file: Option<&[u8]>, line: Option<u32>) -> bool {
        let is_file = file.is_some_and(|file| is_end_of(&self.file, file));
        let lines = self.lines.map(|(first, last)| first..=last);
        is_file && lines.is_none_or(|lines| line.is_some_and(|line| lines.contains(&line)))
    }
}

/// Returns the program that the parent of a launch ran. For a `#!` script, that is the interpreter.
fn program_of_parent<'a>(forest: &Forest<'a>, index: u32) -> &'a [u8] {
    let launcher = forest.launcher(index as usize);
    launcher.map_or(b"", |exec| exec.program_name())
}

pub(crate) fn matches(glob: &GlobMatcher, bytes: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let pattern = glob.glob().glob().as_bytes();
    // Most patterns are plain names. Comparing them is ten times as fast as a matcher.
    match pattern.iter().any(|byte| b"*?[]{}\\".contains(byte)) {
        true => glob.is_match(std::ffi::OsStr::from_bytes(bytes)),
        false => pattern == bytes,
    }
}

pub(crate) fn glob(pattern: &str) -> Result<GlobMatcher, SelectError> {
    let built = GlobBuilder::new(pattern).literal_separator(false).build();
    built
        .map(|glob| glob.compile_matcher())
        .map_err(|error| SelectError::Glob { pattern: pattern.to_owned(), reason: error.kind().to_string() })
}
