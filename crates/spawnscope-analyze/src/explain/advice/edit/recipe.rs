//! Edits of shell code in the recipes of makefiles. The code is read as make passes it to a shell:
//! `$$` is `$`, and what make expands is a variable with an unknown value. The changes are
//! translated back.

use super::shell::ShellRewrite;
use super::{EditRefusal, Splice, refuse};

/// The name of the variable that stands for what make expands, before a number.
const EXPANDED: &str = "MADE_BY_MAKE_";

/// The code of a recipe, as the shell reads it.
struct Code<'t> {
    text: Vec<u8>,
    /// Where each byte of the code begins in the makefile, and where the code ends.
    positions: Vec<usize>,
    /// What make expands.
    expanded: Vec<&'t [u8]>,
}

/// Returns the changes of the calls in the recipe line that begins at a line of a makefile.
pub(super) fn splices(rewrite: &ShellRewrite, makefile: &[u8], line: u32) -> Result<Vec<Splice>, EditRefusal> {
    let start =
        makefile.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1) as usize).map(<[u8]>::len).sum();
    let Some(code) = Code::read(makefile, start) else { return refuse("the line is not a line of a recipe") };
    let splices = rewrite.splices(&code.text, None)?;
    splices.into_iter().map(|splice| code.translated(&splice)).collect()
}

impl<'t> Code<'t> {
    fn read(makefile: &'t [u8], start: usize) -> Option<Code<'t>> {
        (makefile.get(start) == Some(&b'\t')).then_some(())?;
        let mut at = start + makefile[start..].iter().take_while(|byte| b"\t @+-".contains(byte)).count();
        let mut code = Code { text: Vec::new(), positions: Vec::new(), expanded: Vec::new() };
        while let Some(byte) = makefile.get(at).copied().filter(|byte| *byte != b'\n') {
            let rest = &makefile[at..];
            let length = match byte {
                b'\\' if rest.starts_with(b"\\\n\t") => code.push(at, b"\\\n", 3),
                b'\\' if rest.len() > 1 => code.push(at, &rest[..2], 2),
                b'$' if rest.starts_with(b"$$") => code.push(at, b"$", 2),
                b'$' => {
                    let length = expansion(rest)?;
                    let variable = format!("${{{EXPANDED}{}}}", code.expanded.len());
                    code.expanded.push(&rest[..length]);
                    code.push(at, variable.as_bytes(), length)
                }
                _ => code.push(at, &rest[..1], 1),
            };
            at += length;
        }
        code.positions.push(at);
        Some(code)
    }

    /// Adds what the shell reads in place of `length` bytes of the makefile. Returns this length.
    fn push(&mut self, at: usize, text: &[u8], length: usize) -> usize {
        let is_same = text.len() == length;
        self.positions.extend((0..text.len()).map(|offset| if is_same { at + offset } else { at }));
        self.text.extend(text);
        length
    }

    fn translated(&self, splice: &Splice) -> Result<Splice, EditRefusal> {
        if splice.text.contains(&b'\n') {
            return refuse("the change needs several lines, and a recipe has one shell for each");
        }
        let text = String::from_utf8_lossy(&splice.text).replace('$', "$$");
        let text = self.expanded.iter().enumerate().fold(text, |text, (number, expanded)| {
            text.replace(&format!("$${{{EXPANDED}{number}}}"), &String::from_utf8_lossy(expanded))
        });
        let range = self.positions[splice.range.start]..self.positions[splice.range.end];
        Ok(Splice { range, text: text.into_bytes() })
    }
}

/// Returns the length of an expansion of make: `$@`, `$(NAME)`. `None` if its end is not in the
/// same line.
fn expansion(text: &[u8]) -> Option<usize> {
    let close = match text.get(1)? {
        b'(' => b')',
        b'{' => b'}',
        b'\n' => return None,
        _ => return Some(2),
    };
    let mut depth = 0;
    let length = text.iter().take_while(|byte| **byte != b'\n').position(|byte| {
        depth += usize::from(*byte == text[1]);
        depth -= usize::from(*byte == close && depth > 0);
        *byte == close && depth == 0
    })?;
    Some(length + 1)
}
