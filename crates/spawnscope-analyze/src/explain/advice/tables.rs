//! Tables of what languages and programs offer, and of what findings say.

pub(super) use crate::patterns::words::rows;

/// What a recipe (`recipes.tsv`) says.
#[derive(Debug, Default)]
pub(crate) struct Recipe {
    /// The problem, or what to change. Empty if the recipe is a part of another one.
    pub(crate) title: String,
    /// Words such as `modelled`, as the head of the table explains.
    pub(crate) properties: Vec<&'static str>,
    pub(crate) evidence: Vec<String>,
    pub(crate) fix: Vec<String>,
    /// What the fix does not solve, or may break, separated by `; `.
    pub(crate) limits: String,
}

/// Returns what a recipe says in some cases. `values` are put in place of their names in braces,
/// the first one of a name; one that is not empty is a case, too.
pub(crate) fn recipe(key: &str, cases: &[&str], values: &[(&str, &str)]) -> Recipe {
    let is_known =
        |case: &str| cases.contains(&case) || values.iter().any(|(name, value)| *name == case && !value.is_empty());
    let holds = |word: &str| word.strip_prefix('!').map_or_else(|| is_known(word), |not| !is_known(not));
    let is_case = |when: &str| when.is_empty() || when.split(' ').any(|words| words.split('+').all(holds));
    let mut recipe = Recipe::default();
    for [.., text] in rows(include_str!("recipes.tsv")).filter(|[of, when, _]| *of == key && is_case(when)) {
        match text.split_once(": ") {
            Some(("title", title)) => recipe.title = filled(title, values),
            Some(("is", properties)) => recipe.properties.extend(properties.split(' ')),
            Some(("seen", sentence)) => recipe.evidence.push(filled(sentence, values)),
            Some(("caveat", limit)) => add_limit(&mut recipe.limits, &filled(limit, values)),
            _ => recipe.fix.push(filled(text, values)),
        }
    }
    recipe
}

/// Returns the name of a case that holds.
pub(super) fn case(holds: bool, name: &str) -> &str {
    if holds { name } else { "" }
}

/// Adds a limit to others.
pub(super) fn add_limit(limits: &mut String, limit: &str) {
    let separator = if limits.is_empty() || limit.is_empty() { "" } else { "; " };
    limits.extend([separator, limit]);
}

/// Puts values in place of their names. What a value contains stays as it is.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let value = after.split_once('}').and_then(|(name, _)| values.iter().find(|(other, _)| *other == name));
        let (text, length) = value.map_or(("{", 0), |(name, value)| (*value, name.len() + 1));
        filled.push_str(text);
        rest = &after[length..];
    }
    filled + rest
}

/// Whether a row covers all options among these arguments. `options` are letters as for getopt: a
/// colon follows those with a value, `@` those with a value that begins with it (`date -d @0`), `#`
/// stands for a number (`head -5`), and `*` for any options. A row does not know what other options
/// do.
pub(super) fn covers(options: &str, arguments: &[&[u8]]) -> bool {
    let mut words = arguments.iter().take_while(|word| **word != b"--").enumerate();
    let next = |at: usize| arguments.get(at + 1).copied().unwrap_or_default();
    let is_operand = |word: &[u8]| word.len() < 2 || !word.starts_with(b"-");
    options == "*" || words.all(|(at, word)| is_operand(word) || is_group(options.as_bytes(), &word[1..], next(at)))
}

/// Whether a word without its dash is a group of known options. The value of an option is the rest
/// of the group, or the `next` word.
fn is_group(options: &[u8], letters: &[u8], next: &[u8]) -> bool {
    let Some((first, rest)) = letters.split_first() else { return true };
    let letter = if first.is_ascii_digit() { b'#' } else { *first };
    let known = options.iter().position(|option| *option == letter && !b":@".contains(&letter));
    match known.map(|at| options.get(at + 1)) {
        None => false,
        Some(Some(b':')) => true,
        Some(Some(b'@')) => if rest.is_empty() { next } else { rest }.starts_with(b"@"),
        Some(_) => is_group(options, rest, next),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_recipe_has_the_lines_of_its_cases_with_values() {
        let lines = |cases: &[&str]| recipe("make-recursive", cases, &[]).fix.len();
        assert_eq!([lines(&["own", ""]), lines(&["own", "idle"]), lines(&["CMake", "idle"])], [4, 6, 2]);
        let shim = recipe("shims", &["Wrapper"], &[("real", "/opt/{tool}"), ("tool", "x")]);
        assert!(shim.fix[0].ends_with("the wrapper adds: /opt/{tool}"), "{shim:?}");
        assert!(shim.limits.starts_with("the caller must then set"), "{shim:?}");
        let of_python = recipe("growing-parent", &["Python"], &[]);
        assert!(of_python.fix[0].contains("tracemalloc") && of_python.fix.len() == 2, "{of_python:?}");
    }

    /// A recipe whose key is written in another way would be silently empty.
    #[test]
    fn each_key_of_a_recipe_is_in_the_code() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/explain/advice");
        let mut code = String::new();
        for part in ["rules", "sites/cures", "../start_up"] {
            for file in fs::read_dir(directory.join(part)).unwrap().map(|file| file.unwrap().path()) {
                code.extend(fs::read_to_string(file));
            }
        }
        for [key, ..] in rows::<3>(include_str!("recipes.tsv")) {
            assert!(code.contains(&format!("\"{key}\"")), "{key}");
        }
    }

    #[test]
    fn a_row_covers_the_options_that_it_names() {
        for (options, arguments, expected) in [
            ("", &["a", "--", "-b"][..], true),
            ("", &["-b"], false),
            ("rn", &["-rn", "-", "-r"], true),
            ("rn", &["-rnx"], false),
            ("d:f:", &["-d:", "-f2", "-f", "3"], true),
            ("d:f:", &["-c1-60"], false),
            ("n:#", &["-5"], true),
            ("u", &["-u", "-d", "now"], false),
            ("u", &["--utc"], false),
            ("ud@", &["-ud@0"], true),
            ("ud@", &["-u", "-d", "@0", "+%F"], true),
            ("ud@", &["-d", "now"], false),
            ("*", &["--any"], true),
        ] {
            let words: Vec<&[u8]> = arguments.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(covers(options, &words), expected, "{options}: {arguments:?}");
        }
    }
}
