//! Edits of shell code in other files: recipes of makefiles, and scripts of `package.json`. The
//! code is read as the shell gets it: in a recipe, `$$` is `$`, and what make expands is a variable
//! with an unknown value; in a string of JSON, `\"` is a quote. The changes are translated back.

use std::ops::Range;

use super::makefile::expansion_length;
use super::shell::ShellRewrite;
use super::{Result, Splice, line_end, or_refuse, package, refuse_if, splice};

/// The name of the variable that stands for what make expands, before a number.
pub(super) const EXPANDED: &str = "MADE_BY_MAKE_";

/// Code in another file, as the shell reads it.
pub(super) struct Code<'t> {
    pub(super) text: Vec<u8>,
    /// Where each byte of the code begins in the file, and where the code ends.
    positions: Vec<usize>,
    /// What make expands.
    expanded: Vec<&'t [u8]>,
    is_json: bool,
}

/// Returns the changes of the calls in the recipe line that begins at a line of a makefile.
pub(super) fn in_recipe(rewrite: &ShellRewrite, makefile: &[u8], line: u32) -> Result<Vec<Splice>> {
    let code = or_refuse(Code::at_line(makefile, line), "the line is not a line of a recipe")?;
    code.translated(rewrite.splices(&code.text, None)?)
}

/// Returns the code of the recipe line that begins at a line of a makefile.
pub(super) fn recipe_at(makefile: &[u8], line: u32) -> Option<Vec<u8>> {
    Code::at_line(makefile, line).map(|code| code.text)
}

/// Returns the changes of the calls in the script of a package that has this text.
pub(super) fn in_package(rewrite: &ShellRewrite, command: &[u8], json: &[u8]) -> Result<Vec<Splice>> {
    let scripts = package::scripts(json).unwrap_or_default();
    let mut found = scripts.into_iter().filter_map(|script| Code::of_json(json, &script.range));
    let code = or_refuse(found.find(|code| code.text == command), "no script of the package has this text")?;
    code.translated(rewrite.splices(&code.text, None)?)
}

impl<'t> Code<'t> {
    fn at_line(makefile: &'t [u8], line: u32) -> Option<Code<'t>> {
        let lines = makefile.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1) as usize);
        Code::of_recipe(makefile, lines.map(<[u8]>::len).sum())
    }

    fn of_recipe(makefile: &'t [u8], start: usize) -> Option<Code<'t>> {
        (makefile.get(start) == Some(&b'\t')).then_some(())?;
        let mut at = start + makefile[start..].iter().take_while(|byte| b"\t @+-".contains(byte)).count();
        let mut code = Code { text: Vec::new(), positions: Vec::new(), expanded: Vec::new(), is_json: false };
        while let Some(byte) = makefile.get(at).copied().filter(|byte| *byte != b'\n') {
            let rest = &makefile[at..];
            at += match byte {
                b'\\' if rest.starts_with(b"\\\n\t") => code.push(at, b"\\\n", 3),
                b'\\' if rest.len() > 1 => code.push(at, &rest[..2], 2),
                b'$' if rest.starts_with(b"$$") => code.push(at, b"$", 2),
                b'$' => {
                    let length = expansion_length(&rest[..line_end(rest, 0)])?;
                    let variable = format!("${{{EXPANDED}{}}}", code.expanded.len());
                    code.expanded.push(&rest[..length]);
                    code.push(at, variable.as_bytes(), length)
                }
                _ => code.push(at, &rest[..1], 1),
            };
        }
        code.positions.push(at);
        Some(code)
    }

    /// Reads the text of a string of JSON. `None` if it has escapes that scripts do not need.
    pub(super) fn of_json(json: &'t [u8], range: &Range<usize>) -> Option<Code<'t>> {
        let mut code = Code { text: Vec::new(), positions: Vec::new(), expanded: Vec::new(), is_json: true };
        let mut at = range.start;
        while at < range.end {
            at += match json[at..range.end] {
                [b'\\', b'n', ..] => code.push(at, b"\n", 2),
                [b'\\', b't', ..] => code.push(at, b"\t", 2),
                [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] => code.push(at, &[escaped], 2),
                [b'\\', ..] => return None,
                [byte, ..] => code.push(at, &[byte], 1),
                [] => break,
            };
        }
        code.positions.push(at);
        Some(code)
    }

    /// Adds what the shell reads in place of `length` bytes of the file. Returns this length.
    fn push(&mut self, at: usize, text: &[u8], length: usize) -> usize {
        let is_same = text.len() == length;
        self.positions.extend((0..text.len()).map(|offset| if is_same { at + offset } else { at }));
        self.text.extend(text);
        length
    }

    /// Returns the changes of the file for changes of the code.
    pub(super) fn translated(&self, splices: Vec<Splice>) -> Result<Vec<Splice>> {
        let translate = |change: Splice| {
            let range = self.positions[change.range.start]..self.positions[change.range.end];
            let text = String::from_utf8_lossy(&change.text);
            if self.is_json {
                let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
                return Ok(Splice { limits: change.limits, ..splice(range, text) });
            }
            refuse_if(text.contains('\n'), "the change needs several lines, and a recipe has one shell for each")?;
            let text = self.expanded.iter().enumerate().fold(text.replace('$', "$$"), |text, (number, expanded)| {
                let (name, expanded) = (format!("$${{{EXPANDED}{number}"), String::from_utf8_lossy(expanded));
                text.replace(&format!("{name}}}"), &expanded)
                    .replace(&format!("{name}##*/}}"), &format!("$(notdir {expanded})"))
                    .replace(&format!("{name}%/*}}"), &format!("$(patsubst %/,%,$(dir {expanded}))"))
            });
            refuse_if(text.contains(EXPANDED), "make expands what the shell would have to change")?;
            Ok(Splice { limits: change.limits, ..splice(range, text) })
        };
        splices.into_iter().map(translate).collect()
    }
}
