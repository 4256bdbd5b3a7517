//! The table of replacements (`builtins.tsv`): the calls that each row matches, and the shell code
//! that replaces them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::call::{Call, Exact, ExactFor, Form, Operand, Substitute, has_only};
use super::{sed, text};
use crate::explain::advice::tables::rows;
use crate::patterns::shells::Dialect;
use crate::patterns::words::Words;

/// A row of a program's table. The first row that matches a call provides the replacement.
pub(super) struct Row {
    /// Alternative lists of words, as in the table.
    arguments: &'static str,
    when: Words,
    effect: &'static str,
    /// The replaced code and the new code.
    code: [&'static str; 2],
    edit: &'static str,
    /// The limits of the code as a text, and of the edit.
    limits: [Vec<&'static str>; 2],
}

/// The rows of each program.
pub(super) static TABLE: LazyLock<BTreeMap<&'static [u8], Vec<Row>>> = LazyLock::new(|| {
    let text = include_str!("../../builtins.tsv");
    let limits: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix('@')?.split_once('\t')).collect();
    let mut programs: BTreeMap<&[u8], Vec<Row>> = BTreeMap::new();
    for [names, arguments, when, effect, before, after, edit, keys] in rows(text) {
        for program in names.split(' ') {
            let edit_keys = keys.split(" | ").next().unwrap_or_default();
            let limits =
                [keys, edit_keys].map(|keys| keys.split(' ').filter_map(|key| limits.get(key).copied()).collect());
            let row = Row { arguments, when: Words(when), effect, code: [before, after], edit, limits };
            programs.entry(program.as_bytes()).or_default().push(row);
        }
    }
    programs
});

/// Returns the function that computes the replacement from the arguments. It returns `None` if the
/// result might differ.
fn computed(name: &str) -> Option<fn(&Call) -> Option<Substitute>> {
    Some(match name.strip_prefix('=')? {
        "awk" => text::awk,
        "cut" => text::cut,
        "date" => text::date,
        "expr" => text::expr,
        "grep" => text::grep,
        "head" => text::head,
        "sed" => sed::sed,
        "seq" => text::seq,
        "tr" => text::tr,
        _ => return None,
    })
}

/// The names of shells that agree on most extensions, and their dialects.
const SHELLS: [(&str, Dialect); 3] = [("bash", Dialect::Bash), ("ksh", Dialect::Ksh), ("zsh", Dialect::Zsh)];

impl Row {
    /// Returns the replacement of a call that the row matches.
    pub(super) fn substitute(&self, call: &Call) -> Option<Substitute> {
        if let Some(computed) = computed(self.code[1]) {
            return computed(call);
        }
        // Arguments may contain `{program}`, so these are replaced last.
        let [before, after] = self.code.map(|code| {
            filled(&code.replace("{program}", &call.program), call).replace("{call}", &call.command_line())
        });
        let exact = self.exact(call);
        Some(Substitute {
            before,
            after,
            sets: self.effect.strip_prefix("sets "),
            is_builtin: self.effect == "builtin",
            limits: self.limits[0].clone(),
            exact,
        })
    }

    fn exact(&self, call: &Call) -> Option<Exact> {
        let (kind, code) = self.edit.split_once(' ').unwrap_or((self.edit, ""));
        let steps = |operand| Form::Steps { operand, steps: vec![code.to_owned()] };
        let (form, exact_for) = match kind {
            // An expansion of the last argument, a path; of one that ends with a name; of the text
            // that the program reads. A name without a suffix, a computation.
            "directory" => (steps(Operand::Last), ExactFor::Directory),
            "name" => (steps(Operand::Last), ExactFor::Name { suffix: String::new() }),
            "input" => (steps(Operand::Input), ExactFor::Any),
            // A word, as a template; in place of `$( )` only.
            "suffix" => {
                let steps = ["##*/", "%{2}"].map(str::to_owned).to_vec();
                let suffix = call.arguments[1].clone();
                let operand = if call.arguments.len() > 2 { Operand::Last } else { Operand::First };
                (Form::Steps { operand, steps }, ExactFor::Name { suffix })
            }
            "word" => (Form::Word(code.to_owned()), ExactFor::Any),
            "captured" => (Form::Captured(code.to_owned()), ExactFor::Any),
            // Commands that set a variable.
            "statement" => (Form::Statement(code.to_owned()), ExactFor::Any),
            // The name of a builtin in place of the program, for operands that are not builtins
            // themselves.
            "lookup" => (Form::Builtin(code.to_owned()), ExactFor::Program),
            "builtin" => (Form::Builtin(call.program.clone()), ExactFor::Any),
            _ => return None,
        };
        Some(Exact { form, exact_for, limits: self.limits[1].clone() })
    }

    pub(super) fn matches(&self, call: &Call) -> bool {
        let has_own_shell = SHELLS.iter().any(|(name, dialect)| *dialect == call.dialect && self.needs(name));
        (self.arguments == "*" || self.arguments.split(" OR ").any(|words| all_match(words, &call.arguments)))
            && (has_own_shell || !SHELLS.iter().any(|(name, _)| self.needs(name)))
            && (call.is_captured || !self.needs("captured"))
            && (call.is_fed || !self.needs("fed"))
            && (!self.needs("plain-text") || prints_the_same_everywhere(call))
    }

    fn needs(&self, word: &str) -> bool {
        self.when.contains(word.as_bytes())
    }
}

/// Inserts the arguments of a call into code.
fn filled(code: &str, call: &Call) -> String {
    let arguments = (1..).zip(&call.arguments);
    arguments.fold(code.to_owned(), |code, (number, argument)| code.replace(&format!("{{={number}}}"), argument))
}

fn all_match(words: &str, arguments: &[String]) -> bool {
    let matches = |word: &str, argument: &String| match word {
        "ANY" => true,
        "OPERAND" => !argument.starts_with('-'),
        "NUMBER" => argument.parse::<i64>().is_ok(),
        "PLAIN" => has_only(argument, "._-+"),
        _ => word.split('|').any(|alternative| alternative == argument),
    };
    let words: Vec<&str> = words.split_whitespace().collect();
    words.len() == arguments.len() && words.into_iter().zip(arguments).all(|(word, argument)| matches(word, argument))
}

/// Whether the builtin echo of every shell prints the same. Shells differ in options and
/// backslashes.
fn prints_the_same_everywhere(call: &Call) -> bool {
    let has_options = call.arguments.first().is_some_and(|word| word.starts_with('-') && word != "-n");
    !has_options && call.arguments.iter().all(|word| !word.contains('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_code_and_known_limits() {
        for line in rows(include_str!("../../builtins.tsv")) {
            let [programs, arguments, when, _, before, after, _, keys] = line;
            let keys = keys.split_whitespace().filter(|key| *key != "|").count();
            let is_row = |row: &&Row| {
                (row.arguments, row.when.0, row.code) == (arguments, when, [before, after])
                    && row.limits[0].len() == keys
            };
            let program = programs.split(' ').next().unwrap();
            let row = TABLE[program.as_bytes()].iter().find(is_row).unwrap_or_else(|| panic!("{line:?}"));
            assert!(computed(row.code[1]).is_some() || !row.code[1].starts_with('='), "{line:?}");
        }
    }
}
