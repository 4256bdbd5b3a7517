//! Finds the files that define the functions of dash, which stores only the line where a function
//! begins: the script, a file that it sources, or a file that such a file sources. Their names are
//! in the texts, as far as they are written out (`. "$directory/functions"`). A file defines a
//! function if the head of the function is at that line.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::callers::sources::{Place, Source, Sources, Stamp};

/// Maximum number of scripts, of files for each, of directories in which they are searched, and of
/// functions.
const MAX_SCRIPTS: usize = 64;
const MAX_FILES: usize = 64;
const MAX_DIRECTORIES: usize = 16;
const MAX_FUNCTIONS: usize = 4096;

/// Keywords and operators after which a command begins.
const BEFORE_COMMANDS: [&[u8]; 10] = [b";", b"&", b"|", b"(", b"{", b"!", b"then", b"do", b"else", b"elif"];
const SOURCE_COMMANDS: [&[u8]; 2] = [b".", b"source"];

/// What a dash executes.
pub(crate) struct Call<'a> {
    /// `$0`.
    pub(crate) script: &'a [u8],
    /// The sourced file that is being read; empty if there is none, or if it is unknown.
    pub(crate) reading: &'a [u8],
    /// The name of the current function; empty if it is unknown.
    pub(crate) function: &'a [u8],
    /// The line where it begins.
    pub(crate) function_line: u32,
}

/// The functions found so far, by script.
#[derive(Debug, Default)]
pub(crate) struct Functions(HashMap<Vec<u8>, Script>);

#[derive(Debug)]
struct Script {
    stamp: Stamp,
    /// The absolute paths of the script and of what it sources.
    files: Vec<Vec<u8>>,
    /// The names of what they source, as far as they are written out.
    names: BTreeSet<Vec<u8>>,
    directories: BTreeSet<Vec<u8>>,
    /// The index in `files` of each function, by its name and its line.
    found: HashMap<(Vec<u8>, u32), Option<usize>>,
}

impl Functions {
    /// Returns the file that defines the current function, if one is found. `None` if the script
    /// cannot be read.
    pub(crate) fn file_of(&mut self, call: &Call<'_>, place: &Place, sources: &mut Sources) -> Option<Option<Vec<u8>>> {
        let mut found = None;
        for path in place.absolute_at_begin(call.script) {
            found = self.file_below(&path, call, place, sources).or(found);
            if let Some(Some(_)) = found {
                break;
            }
        }
        found
    }

    /// Returns the file that defines the current function, if the script has this path.
    fn file_below(
        &mut self,
        path: &[u8],
        call: &Call<'_>,
        place: &Place,
        sources: &mut Sources,
    ) -> Option<Option<Vec<u8>>> {
        let stamp = sources.read(path, place).map(|source| source.stamp);
        let is_new = |stamp: &Stamp| self.0.get(path).is_none_or(|script| script.stamp != *stamp);
        if let Some(stamp) = stamp.filter(is_new) {
            if self.0.len() >= MAX_SCRIPTS {
                self.0.clear();
            }
            self.0.insert(path.to_owned(), Script::new(path, stamp, place, sources));
        }
        // A process that has ended no longer leads to its root: what is known remains.
        let script = self.0.get_mut(path)?;
        if let Some(reading) = place.absolute(call.reading) {
            script.add(&reading, place, sources);
        }
        script.file_of(call, place, sources).map(Option::<&Vec<u8>>::cloned)
    }
}

impl Script {
    fn new(path: &[u8], stamp: Stamp, place: &Place, sources: &mut Sources) -> Script {
        let parents =
            path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').map(|(at, _)| path[..at].to_vec());
        let directories = place.directory.iter().cloned().chain(parents.take(2)).collect();
        let mut script =
            Script { stamp, files: Vec::new(), names: BTreeSet::new(), directories, found: HashMap::new() };
        script.add(path, place, sources);
        script
    }

    /// Adds a file, and what can now be found of what the files source.
    fn add(&mut self, path: &[u8], place: &Place, sources: &mut Sources) {
        let is_known = self.files.iter().any(|known| known == path) || self.files.len() >= MAX_FILES;
        if is_known || sources.read(path, place).is_none() {
            return;
        }
        self.found.retain(|_, file| file.is_some());
        let mut read = self.files.len();
        self.files.push(path.to_vec());
        while read < self.files.len() {
            for path in &self.files[read..] {
                let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or_default();
                if self.directories.len() < MAX_DIRECTORIES {
                    self.directories.insert(path[..end].to_vec());
                }
                let source = sources.read(path, place);
                let lines = source.iter().flat_map(|source| source.text.split(|byte| *byte == b'\n'));
                self.names.extend(lines.flat_map(sourced_in));
            }
            read = self.files.len();
            for candidate in self.candidates() {
                let is_new = self.files.len() < MAX_FILES && !self.files.contains(&candidate);
                if is_new && sources.read(&candidate, place).is_some() {
                    self.files.push(candidate);
                }
            }
        }
    }

    /// Returns where the files that are sourced may be.
    fn candidates(&self) -> Vec<Vec<u8>> {
        let in_all = |name: &Vec<u8>| match name.first() {
            Some(b'/') => vec![name.clone()],
            _ => self.directories.iter().map(|directory| [directory, &b"/"[..], name].concat()).collect(),
        };
        self.names.iter().flat_map(in_all).collect()
    }

    fn file_of(&mut self, call: &Call<'_>, place: &Place, sources: &mut Sources) -> Option<Option<&Vec<u8>>> {
        let key = (call.function.to_vec(), call.function_line);
        if let Some(found) = self.found.get(&key) {
            return Some(found.map(|found| &self.files[found]));
        }
        sources.read(&self.files[0], place)?;
        let mut defining: Vec<(Arc<Source>, usize)> = Vec::new();
        for (at, path) in self.files.iter().enumerate() {
            let Some(source) = sources.read(path, place) else { continue };
            // Several paths may lead to the same file.
            let is_new = !defining.iter().any(|(known, _)| known.text == source.text);
            if is_new && defines(&source.text, call.function, call.function_line) {
                defining.push((source, at));
            }
        }
        let found = match &defining[..] {
            [(_, only)] => Some(*only),
            _ => None,
        };
        if self.found.len() >= MAX_FUNCTIONS {
            self.found.clear();
        }
        self.found.insert(key, found);
        Some(found.map(|found| &self.files[found]))
    }
}

/// Whether a text defines a function of this name, or one of unknown name, at this line.
fn defines(text: &[u8], name: &[u8], line: u32) -> bool {
    let number = (line as usize).checked_sub(1);
    let line = number.and_then(|number| text.split(|byte| *byte == b'\n').nth(number));
    line.is_some_and(|line| is_definition(line, name))
}

/// Whether a line contains the head of a function, such as `name ()`.
fn is_definition(line: &[u8], name: &[u8]) -> bool {
    let mut opening = (0..line.len()).filter(|at| line[*at] == b'(');
    opening.any(|at| {
        let closes = line[at + 1..].trim_ascii_start().starts_with(b")");
        let before = line[..at].trim_ascii_end();
        let is_name = before.strip_suffix(name).is_some_and(|rest| {
            let last = rest.last();
            name.is_empty() || last.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        });
        closes && is_name && !before.is_empty()
    })
}

/// Whether a file is sourced in these lines of a text, counted from 1.
pub(crate) fn sources_between(text: &[u8], first: u32, last: u32) -> bool {
    let lines = text.split(|byte| *byte == b'\n').take(last as usize).skip((first as usize).saturating_sub(1));
    lines.into_iter().any(|line| !commands_that_source(line).is_empty())
}

/// Returns the files that a line sources: their paths, or what is written out of them.
fn sourced_in(line: &[u8]) -> Vec<Vec<u8>> {
    commands_that_source(line).into_iter().filter_map(written_out).collect()
}

/// Returns what follows each command of a line that sources a file.
fn commands_that_source(line: &[u8]) -> Vec<&[u8]> {
    if line.trim_ascii_start().starts_with(b"#") {
        return Vec::new();
    }
    let commands = (0..line.len()).filter_map(|at| {
        let rest = SOURCE_COMMANDS.iter().find_map(|word| line[at..].strip_prefix(*word))?;
        let before = line[..at].trim_ascii_end();
        let begins = before.is_empty() || BEFORE_COMMANDS.iter().any(|word| before.ends_with(word));
        (begins && rest.first().is_some_and(u8::is_ascii_whitespace)).then(|| rest.trim_ascii_start())
    });
    commands.collect()
}

/// Returns a word of a shell as far as it is written out after its last expansion; an absolute path
/// if it has none. `None` if nothing is left.
fn written_out(text: &[u8]) -> Option<Vec<u8>> {
    let (mut word, mut is_whole) = (Vec::new(), true);
    let (mut quote, mut at) = (None, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match (byte, quote) {
            (b'\'' | b'"', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            (b'$' | b'`', None | Some(b'"')) => {
                at += expansion_bytes(byte, &text[at..]);
                (word, is_whole) = (Vec::new(), false);
            }
            (b'\\', None) => {
                word.extend(text.get(at));
                at += 1;
            }
            (b';' | b'&' | b'|' | b')' | b'}', None) => break,
            (_, None) if byte.is_ascii_whitespace() => break,
            _ => word.push(byte),
        }
    }
    let start = word.iter().position(|byte| *byte != b'/').filter(|_| !is_whole).unwrap_or_default();
    let word = word.split_off(start);
    let word = word.strip_prefix(b"./").map(<[u8]>::to_vec).unwrap_or(word);
    (word.first().is_some_and(|byte| *byte != b'/' || is_whole)).then_some(word)
}

/// Returns the length of an expansion after its first byte.
fn expansion_bytes(first: u8, rest: &[u8]) -> usize {
    let to = |close: u8| rest.iter().position(|byte| *byte == close).map_or(rest.len(), |at| at + 1);
    match (first, rest.first()) {
        (b'`', _) => to(b'`'),
        (_, Some(b'{')) => to(b'}'),
        (_, Some(b'(')) => {
            let mut depth = 0_i32;
            let end = rest.iter().position(|byte| {
                depth += i32::from(*byte == b'(') - i32::from(*byte == b')');
                depth == 0
            });
            end.map_or(rest.len(), |end| end + 1)
        }
        _ => {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn the_head_of_a_function_is_recognized() {
        for line in ["f() {", "  f ( ) {", "true; f() { :; }", "a() { :; }; f() {"] {
            assert!(is_definition(line.as_bytes(), b"f"), "{line}");
        }
        for line in ["", "f", "f $(x)", "of() {", "f2() {", "(f)"] {
            assert!(!is_definition(line.as_bytes(), b"f"), "{line}");
        }
        assert!(is_definition(b"set_() {", b""), "a function whose name is unknown");
        assert!(!is_definition(b"()", b"") && !is_definition(b"x=$(y)", b""));
    }

    #[test]
    fn the_names_of_sourced_files_are_read_as_far_as_they_are_written_out() {
        for (line, names) in [
            (". ./lib.sh", &["lib.sh"][..]),
            ("[ -f x ] && . /etc/default/x", &["/etc/default/x"]),
            ("if true; then . \"${D:-/a b}/functions\"; fi", &["functions"]),
            (". \"$(dirname \"$0\")/../lib/a.sh\" && source 'b c.sh'", &["../lib/a.sh", "b c.sh"]),
            ("{ . `pwd`/x; }", &["x"]),
            (". \"$1\"", &[]),
            ("find . -name x", &[]),
            ("# then . x", &[]),
            (".", &[]),
        ] {
            let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            assert_eq!(sourced_in(line.as_bytes()), names, "{line}");
        }
        assert!(sources_between(b"f() {\n  . x y\n}\n", 1, 2));
        assert!(!sources_between(b"f() {\n  . x y\n}\n", 1, 1) && !sources_between(b". a\nf() {\n", 2, 9));
    }

    #[test]
    fn a_function_belongs_to_the_only_file_that_defines_it_at_its_line() {
        let temporary = tempfile::tempdir().unwrap();
        let place = Place { directory: Some(temporary.path().as_os_str().as_bytes().to_vec()), ..Place::default() };
        for (name, text) in [
            ("main", ". \"$(dirname \"$0\")/lib/a.sh\"\n. $X/b.sh; . $Y/f\nown() {\n"),
            ("lib/a.sh", "here=x\n. \"$here/c.sh\"\na() {\n"),
            ("lib/c.sh", "c() {\n\nb () {\n"),
            ("b.sh", "\n\nb() {\n"),
            ("elsewhere/d", ". ${E}/e\n"),
            ("elsewhere/e", "e() {\n"),
            ("elsewhere/f", "f() {\n"),
        ] {
            let path = temporary.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (mut functions, mut sources) = (Functions::default(), Sources::default());
        let mut file_of = |reading: &str, function: &str, function_line| {
            let (reading, function) = (reading.as_bytes(), function.as_bytes());
            let call = Call { script: b"main", reading, function, function_line };
            let file = functions.file_of(&call, &place, &mut sources)??;
            Some(String::from_utf8(file).unwrap().rsplit('/').next().unwrap().to_owned())
        };
        for (function, line, file) in
            [("own", 3, Some("main")), ("a", 3, Some("a.sh")), ("c", 1, Some("c.sh")), ("b", 3, None), ("a", 2, None)]
        {
            assert_eq!(file_of("", function, line).as_deref(), file, "{function} at line {line}");
        }
        for function in ["e", "f"] {
            assert_eq!(file_of("", function, 1), None);
        }
        for function in ["e", "f"] {
            assert_eq!(file_of("elsewhere/d", function, 1).as_deref(), Some(function));
        }
    }

    #[test]
    fn a_script_is_found_after_it_has_changed_its_directory() {
        let [began, now] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let script = began.path().join("main");
        std::fs::write(&script, "own() {\n").unwrap();
        // Where the process is now, another file has this name.
        std::fs::write(now.path().join("main"), "other() {\n").unwrap();
        let mut cat = std::process::Command::new("cat");
        cat.env("PWD", began.path()).current_dir(now.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = cat.spawn().unwrap();
        // The environment is complete once the program runs.
        process.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let place = Place::of(spawnscope_data::event::Pid(process.id().cast_signed()));
        let call = Call { script: b"./main", reading: b"", function: b"own", function_line: 1 };
        let found = Functions::default().file_of(&call, &place, &mut Sources::default());
        drop(process.stdin.take());
        process.wait().unwrap();
        assert_eq!(found, Some(Some(script.as_os_str().as_bytes().to_vec())));
    }
}
