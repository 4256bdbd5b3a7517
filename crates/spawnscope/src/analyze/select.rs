//! Which launches are meant: `dirname`, `argv=*--version*`, `parent=python3*`, `line=unpack.sh:14`, or several of these joined
//! by commas, which must then all hold.

use globset::{GlobBuilder, GlobMatcher};

use super::callers::{CallSite, Callers, Detail};
use super::launch::{Launch, base_name};
use super::tree::Forest;

/// What launches are selected by.
#[derive(Clone, Debug)]
pub struct Selector {
    text: String,
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
enum Term {
    /// Base name of a program: the one that the launch became, or `(bash)` for a fork of bash.
    Program(GlobMatcher),
    /// The arguments joined by blanks, of any of its execs.
    Argv(GlobMatcher),
    /// Base name of the parent's program.
    Parent(GlobMatcher),
    /// The line that asked for it, as `report --by line` tells it.
    Line(LinePattern),
}

/// A file, and perhaps lines in it.
#[derive(Clone, Debug)]
struct LinePattern {
    /// The last parts of the file's path.
    file: Vec<u8>,
    /// The first and the last line.
    lines: Option<(u32, u32)>,
}

/// Why a text selects nothing.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// There is nothing in it, or between two commas.
    #[error("`{0}` has an empty term: name a program, as in `dirname`, or use argv=GLOB, parent=GLOB, line=FILE:N")]
    Empty(String),
    /// The pattern is none.
    #[error("`{pattern}` is no pattern: {reason}")]
    Glob {
        /// What was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another word before `=`.
    #[error("launches cannot be selected by `{0}`: use a program's name, argv=GLOB, parent=GLOB or line=FILE:N")]
    Key(String),
    /// A range of lines that ends before it begins.
    #[error("`line={0}` names no lines: the first one of a range comes first, as in line=FILE:4-6")]
    Reversed(String),
    /// No launch of the recording has one.
    #[error(
        "`{0}` selects by the line that asked for a launch, but this recording holds none: use a program's name, argv=GLOB or parent=GLOB"
    )]
    Line(String),
}

impl Selector {
    /// Reads a selection.
    ///
    /// # Errors
    /// When a term is empty, no pattern, or of an unknown kind.
    pub fn parse(text: &str) -> Result<Selector, SelectError> {
        let terms: Result<Vec<Term>, SelectError> = text.split(',').map(|term| Term::parse(term, text)).collect();
        Ok(Selector {
            text: text.to_owned(),
            terms: terms?,
        })
    }

    /// As it was typed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the line that asked for a launch matters.
    #[must_use]
    pub fn is_by_line(&self) -> bool {
        self.terms.iter().any(|term| matches!(term, Term::Line(_)))
    }

    /// The selected launches by index, in the order of their numbers.
    ///
    /// # Errors
    /// When they are selected by a line, and no launch has one.
    pub fn select(&self, forest: &Forest<'_>) -> Result<Vec<u32>, SelectError> {
        let callers = self.is_by_line().then(|| Callers::find(forest, Detail::Line));
        if callers.as_ref().is_some_and(|callers| !callers.has_any()) {
            return Err(SelectError::Line(self.text.clone()));
        }
        let launches = (0..).zip(&forest.launches);
        let selected = launches.filter(|(index, launch)| {
            let call_site = callers.as_ref().and_then(|callers| callers.of(*index as usize));
            launch.is_launch() && self.terms.iter().all(|term| term.holds(launch, call_site))
        });
        Ok(selected.map(|(index, _)| index).collect())
    }

    /// The launches of which a selected line is only a caller: the place that asked for most of them, as it is told, and how many
    /// they are. `None` where there are none.
    #[must_use]
    pub fn called_from(&self, forest: &Forest<'_>) -> Option<(String, u64)> {
        let is_called = |launch: &Launch<'_>, pattern: &LinePattern| {
            let mut frames = forest.frames(launch.best_stack());
            frames.any(|frame| pattern.holds(frame.file, frame.line))
        };
        let launches = (0..).zip(&forest.launches).filter(|(_, launch)| {
            let holds = |term: &Term| match term {
                Term::Line(pattern) => is_called(launch, pattern),
                _ => term.holds(launch, None),
            };
            launch.is_launch() && self.terms.iter().all(holds)
        });
        let launches: Vec<u32> = launches.map(|(index, _)| index).collect();
        let counts = Callers::find(forest, Detail::Line).count(&launches);
        let (call_site, _) = counts.most.first()?;
        Some((
            String::from_utf8_lossy(&call_site.short_label()).into_owned(),
            launches.len() as u64,
        ))
    }
}

impl Term {
    fn parse(term: &str, whole: &str) -> Result<Term, SelectError> {
        match term.split_once('=') {
            Some((_, "")) | None if term.is_empty() || term.ends_with('=') => Err(SelectError::Empty(whole.to_owned())),
            Some(("argv", pattern)) => Ok(Term::Argv(glob(pattern)?)),
            Some(("parent", pattern)) => Ok(Term::Parent(glob(pattern)?)),
            Some(("line", call_site)) => LinePattern::parse(call_site).map(Term::Line),
            Some((key, _)) => Err(SelectError::Key(key.to_owned())),
            None => Ok(Term::Program(glob(term)?)),
        }
    }

    fn holds(&self, launch: &Launch<'_>, call_site: Option<&CallSite>) -> bool {
        match self {
            Term::Line(pattern) => {
                call_site.is_some_and(|call_site| pattern.holds(call_site.file.as_deref(), call_site.line))
            }
            Term::Program(glob) => {
                let of_execs = || launch.execs.iter().map(|exec| base_name(exec.path()));
                matches(glob, &launch.command.label()) || of_execs().any(|name| matches(glob, name))
            }
            Term::Argv(glob) => launch.execs.iter().any(|exec| {
                let argv: Vec<&[u8]> = exec.arguments().collect();
                matches(glob, &argv.join(&b' '))
            }),
            Term::Parent(glob) => launch.parent.get().is_some() && matches(glob, launch.birth_command.name),
        }
    }
}

impl LinePattern {
    /// `unpack.sh:14`, `unpack.sh:10-20` or `unpack.sh`; what is no line number belongs to the file's name.
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
        Ok(LinePattern {
            file: file.strip_prefix("./").unwrap_or(file).as_bytes().to_vec(),
            lines,
        })
    }

    fn holds(&self, file: Option<&[u8]>, line: Option<u32>) -> bool {
        let is_file = file.is_some_and(|file| {
            let before = file.strip_suffix(self.file.as_slice());
            before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
        });
        let is_line = |(first, last): (u32, u32)| line.is_some_and(|line| (first..=last).contains(&line));
        is_file && self.lines.is_none_or(is_line)
    }
}

fn matches(glob: &GlobMatcher, bytes: &[u8]) -> bool {
    use std::os::unix::ffi::OsStrExt;
    glob.is_match(std::ffi::OsStr::from_bytes(bytes))
}

fn glob(pattern: &str) -> Result<GlobMatcher, SelectError> {
    let built = GlobBuilder::new(pattern).literal_separator(false).build();
    built
        .map(|glob| glob.compile_matcher())
        .map_err(|error| SelectError::Glob {
            pattern: pattern.to_owned(),
            reason: error.kind().to_string(),
        })
}
