//! Regular expressions that users write for grep, sed and expr, in the form that bash and awk read.

/// Returns an expression of grep, sed or expr as an extended one. `None` if that may match other
/// texts.
pub(crate) fn extended(pattern: &str, is_extended: bool) -> Option<String> {
    let (mut result, mut characters) = (String::new(), pattern.chars());
    while let Some(each) = characters.next() {
        let is_first = result.is_empty() || result.ends_with(['(', '|']);
        let is_last = characters.as_str().is_empty();
        match each {
            '\\' => match characters.next()? {
                next if ".*[]^$\\/".contains(next) => result.extend([each, next]),
                next if "(){}+?|".contains(next) && is_extended => result.extend([each, next]),
                next if "(){}".contains(next) || "+?".contains(next) && !is_first => result.push(next),
                _ => return None,
            },
            '[' => {
                // A bracket at the beginning of a set is a member of it, and so is `[`.
                let rest = characters.as_str();
                let skipped = ["^]", "]", "^", ""].into_iter().find(|start| rest.starts_with(start))?.len();
                let length = skipped + rest[skipped..].replace(":]", "::").find(']')? + 1;
                result.push('[');
                result.push_str(&rest[..length]);
                characters = rest[length..].chars();
            }
            '(' | ')' | '{' | '}' | '+' | '?' | '|' if !is_extended => result.extend(['\\', each]),
            '*' | '+' | '?' | '{' if is_first || result == "^" => return None,
            '^' if !result.is_empty() => return None,
            '$' if !is_last => return None,
            '\'' | '\n' => return None,
            _ => result.push(each),
        }
    }
    Some(result)
}
