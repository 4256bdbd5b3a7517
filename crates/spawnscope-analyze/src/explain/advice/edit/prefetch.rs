//! Edits of loops and functions that ask git about another item each time: bash reads many answers at once, and asks git only about an item that
//! is not among them. So each question has the same answer and exit status as before.

use super::around::insertion_at;
use super::once::place;
use super::shell::{FoundCall, unused_variable};
use super::{EditRefusal, Splice, refuse, refuse_if, splice};
use crate::explain::advice::phrases::name;
use crate::patterns::queries::GIT_READS;
use crate::patterns::script::{Part, Script, Word};
use crate::patterns::shells::Dialect;

/// A question about the last word of a call, and the code that reads many answers into the table `{t}`. `{format}` is the format that the call has.
struct Listing {
    words: &'static [&'static str],
    code: &'static str,
}

/// A word of [`Listing`] that is a format of one line.
const FORMAT: &str = "--format=";
/// The keys begin with `=`, since bash has no empty ones. A key of git's settings without a value is left out, and an older commit, since a long
/// history takes long to read.
const LISTINGS: [Listing; 3] = [
    Listing {
        words: &["config", "--get"],
        code: "while IFS= read -r -d '' {t}_key; do [[ ${t}_key != *$'\\n'* ]] || {t}[=${{t}_key%%$'\\n'*}]=${{t}_key#*$'\\n'}; done < <(git config --list -z)",
    },
    Listing { words: &["log", "-1", FORMAT, "--"], code: LAST_COMMITS },
    Listing { words: &["log", "-n1", FORMAT, "--"], code: LAST_COMMITS },
];
/// Ends at the first merge: before it, git may follow either side.
const LAST_COMMITS: &str = "while IFS= read -r {t}_key && IFS= read -r {t}_value; do {t}[=${t}_key]=${t}_value; done < <(git -c core.quotePath=off log -n 1000 --no-renames --format='%x01%P%x02{format}' \
     --name-only --relative 2>/dev/null | awk '/^\\001/ { at = index($0, \"\\002\"); if (substr($0, 1, at) ~ / /) exit; answer = substr($0, at + 1); next } NF && !known[$0]++ { print; print answer }')";

/// Reads the answers before the loop or the function that asks.
pub(super) fn prefetch(call: &FoundCall<'_, '_>) -> Result<Vec<Splice>, EditRefusal> {
    let script = call.script;
    let [_, words @ .., item] = &call.simple.words[..] else { return refuse("the call has no item") };
    let literals: Option<Vec<String>> = words.iter().map(|word| word.literal().map(|text| name(&text))).collect();
    let literals = literals.unwrap_or_default();
    let is_word = |(expected, word): (&&str, &String)| match *expected {
        FORMAT => word.strip_prefix(FORMAT).is_some_and(is_format_of_one_line),
        other => other == word,
    };
    let is_listed =
        |listing: &&Listing| listing.words.len() == literals.len() && listing.words.iter().zip(&literals).all(is_word);
    let listing = LISTINGS.iter().find(is_listed).filter(|_| call.rewrite.program == b"git");
    let (Some(listing), Dialect::Bash) = (listing, call.rewrite.dialect) else {
        return refuse(format!("{} does not list the answers to all questions", call.program()));
    };
    refuse_if(!only_reads(script), "the script also changes what git answers")?;
    let table = unused_variable(script, &format!("git_{}", literals[0]));
    let answer = format!("{table}[={}]", key(item)?);
    let format = literals.iter().find_map(|word| word.strip_prefix(FORMAT)).unwrap_or_default();
    let read = listing.code.replace("{t}", &table).replace("{format}", format);
    let asked = call.substitution.unwrap_or(call.command);
    let at = script.node(place(call, asked, &[])?).range.start;
    let (range, text) = match call.substitution {
        Some(substitution) => {
            let range = script.node(substitution).range.clone();
            (range.clone(), format!("${{{answer}-{}}}", name(script.source(&range))))
        }
        None => {
            let range = script.node(call.command).range.clone();
            let source = name(script.source(&range));
            let print = format!("printf '%s\\n' \"${{{answer}}}\"");
            (range, format!("if [[ ${{{answer}+x}} ]]; then {print}; else {source}; fi"))
        }
    };
    let before = insertion_at(script.text, at, &format!("declare -A {table}=(); {read}"));
    Ok(vec![before, splice(range, text)])
}

/// Whether each git of a script only reads.
fn only_reads(script: &Script<'_>) -> bool {
    script.calls(b"git").all(|command| {
        let words = script.simple(command).map(|simple| &simple.words[..]).unwrap_or_default();
        let literal = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
        GIT_READS.contains(&literal(1))
            || literal(1) == b"describe"
            || literal(1) == b"config" && literal(2).starts_with(b"--get")
    })
}

/// Whether a format of git is one line of text for every commit.
pub(super) fn is_format_of_one_line(format: &str) -> bool {
    let mut fields = format.split('%');
    fields.next().is_some()
        && fields.all(|field| {
            let is_of_person =
                field.starts_with(['a', 'c']) && field[1..].starts_with(|next: char| "nNeEdDrtiIs".contains(next));
            is_of_person || field.starts_with(['H', 'h', 's'])
        })
        && !format.contains(['\n', '\''])
}

/// Returns a word as the index of a table, without quotes.
fn key(word: &Word<'_>) -> Result<String, EditRefusal> {
    let part = |part: &Part<'_>| match part {
        Part::Literal { text, .. } => {
            let is_plain = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(byte));
            is_plain.then(|| name(text))
        }
        Part::Variable { name: variable, .. } => Some(format!("${{{}}}", name(variable))),
        _ => None,
    };
    let parts: Option<String> = word.parts.iter().map(part).collect();
    parts.ok_or_else(|| EditRefusal("the item is not the text of a variable".to_owned()))
}
