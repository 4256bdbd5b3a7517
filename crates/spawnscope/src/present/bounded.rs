//! Shortens JSON to a number of bytes, for readers with little room, such as the context of a
//! language model. Lists begin with what matters most, so their ends are left out; `left_out`
//! counts what. Verbs need not know how long their answers are.
//!
//! The rank of an entry is the sum of its own position and those of the entries around it, so that
//! the first finding keeps its first call sites longer than the tenth finding stays. The highest
//! rank is used with which the answer fits.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

const LEFT_OUT: &str = "left_out";
/// The lists that matter most, in any answer.
const MAIN: [&str; 5] = ["advice", "groups", "changes", "commands", "critical_path"];
/// If an answer does not fit, no text is longer than a fourth of it, or, if its first entries then
/// do not fit, a sixteenth, or this.
const SHORT_TEXT: usize = 64;
/// In a list of texts or numbers, such as arguments, this number of entries have the same rank:
/// they are short.
const PLAIN_PER_RANK: usize = 8;
/// No answer has entries of higher ranks.
const MAX_RANK: usize = 1 << 30;

/// An answer does not fit even without the entries of lists.
#[derive(Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// The length of the shortest answer.
    pub least_bytes: usize,
}

/// Returns JSON in one line of at most `max_bytes`, with its newline.
pub fn bounded(value: &Value, max_bytes: usize) -> Result<String, TooSmall> {
    let shortened = |ranks: usize, longest: usize| {
        let mut shortener = Shortener { ranks, longest, counts: BTreeMap::new() };
        shortener.answer(value)
    };
    let whole = shortened(usize::MAX, usize::MAX);
    if whole.len() <= max_bytes {
        return Ok(whole);
    }
    let lengths = [max_bytes / 4, max_bytes / 16];
    let longest = lengths.into_iter().find(|longest| shortened(1, *longest).len() <= max_bytes).unwrap_or(SHORT_TEXT);
    let fitting = |ranks| Some(shortened(ranks, longest)).filter(|text| text.len() <= max_bytes);
    let least = shortened(0, SHORT_TEXT);
    let mut best = (0, fitting(0).ok_or(TooSmall { least_bytes: least.len() })?);
    let mut step = 1;
    while let Some(text) = fitting(best.0 + step).filter(|_| best.0 < MAX_RANK) {
        best = (best.0 + step, text);
        step *= 2;
    }
    while step > 1 {
        step /= 2;
        if let Some(text) = fitting(best.0 + step) {
            best = (best.0 + step, text);
        }
    }
    Ok(best.1)
}

/// Copies a value without what is left out.
struct Shortener {
    /// Entries are kept if their rank is less.
    ranks: usize,
    /// Bytes of the longest text that is kept whole.
    longest: usize,
    /// For each path, how much of how much was kept.
    counts: BTreeMap<String, [usize; 2]>,
}

impl Shortener {
    fn answer(&mut self, value: &Value) -> String {
        let mut answer = self.copy(value, "", 0);
        let left_out = self.counts.iter().filter(|(_, [kept, of])| kept < of);
        let left_out: Map<_, _> =
            left_out.map(|(path, [kept, of])| (path.clone(), json!({ "kept": kept, "of": of }))).collect();
        answer[LEFT_OUT] = left_out.into();
        format!("{answer}\n")
    }

    fn copy(&mut self, value: &Value, path: &str, rank: usize) -> Value {
        match value {
            Value::Array(entries) => {
                let first = rank + usize::from(!MAIN.contains(&path));
                let per_rank = if entries.iter().any(|entry| entry.is_object()) { 1 } else { PLAIN_PER_RANK };
                let kept = entries.len().min(self.ranks.saturating_sub(first).saturating_mul(per_rank));
                self.count(path, kept, entries.len());
                let path = format!("{path}[]");
                let kept = entries.iter().take(kept).enumerate();
                kept.map(|(position, entry)| self.copy(entry, &path, first + position / per_rank)).collect()
            }
            Value::Object(object) => {
                let mut copy = Map::new();
                for (key, value) in object {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    match value {
                        // A part of a patch or of a script would be of no use.
                        Value::String(text) if text.len() > self.longest && text.contains('\n') => {
                            self.count(&path, 0, text.len());
                        }
                        value => drop(copy.insert(key.clone(), self.copy(value, &path, rank))),
                    }
                }
                copy.into()
            }
            Value::String(text) if text.len() > self.longest => {
                let end = (0..=self.longest).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
                self.count(path, end, text.len());
                format!("{}…", &text[..end]).into()
            }
            value => value.clone(),
        }
    }

    fn count(&mut self, path: &str, kept: usize, of: usize) {
        let counts = self.counts.entry(path.to_owned()).or_default();
        counts[0] += kept;
        counts[1] += of;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// An answer with this number of findings, each with this number of call sites.
    fn findings(count: usize, callers: usize) -> Value {
        let callers: Vec<_> = (0..callers).map(|line| json!({ "file": "build.sh", "line": line })).collect();
        let finding = |number| json!({ "id": number, "callers": callers });
        json!({ "wall_ns": 7, "advice": (0..count).map(finding).collect::<Vec<_>>(), "others": vec![0; count] })
    }

    #[test]
    fn what_matters_most_is_kept_and_the_rest_is_counted() {
        let value = findings(50, 10);
        let answer = parsed(&bounded(&value, 1500).unwrap());
        let advice = answer["advice"].as_array().unwrap();
        assert_eq!((advice[0]["id"].as_u64(), &answer["wall_ns"]), (Some(0), &json!(7)));
        let [first, last] = [&advice[0], &advice[advice.len() - 1]].map(|one| one["callers"].as_array().unwrap().len());
        assert!(advice.len() > 5 && first > last, "{answer}");
        assert_eq!(answer["left_out"]["advice"], json!({ "kept": advice.len(), "of": 50 }));
        let callers: usize = advice.iter().map(|one| one["callers"].as_array().unwrap().len()).sum();
        assert_eq!(answer["left_out"]["advice[].callers"], json!({ "kept": callers, "of": 10 * advice.len() }));
    }

    #[test]
    fn an_answer_that_fits_is_complete_and_says_so() {
        let value = findings(2, 2);
        let mut answer = parsed(&bounded(&value, 1500).unwrap());
        assert_eq!(answer["left_out"], json!({}));
        answer.as_object_mut().unwrap().remove("left_out");
        assert_eq!(answer, value);
    }

    #[test]
    fn long_texts_are_cut_between_characters_but_not_patches() {
        let script = "é".repeat(9000);
        let value =
            json!({ "advice": [{ "patch": "-a\n+b\n".repeat(2000), "title": script }], "argv": ["sh", script] });
        let answer = parsed(&bounded(&value, 2000).unwrap());
        let title = answer["advice"][0]["title"].as_str().unwrap();
        assert!(title.starts_with('é') && title.ends_with('…') && title.len() < 600, "{title}");
        assert_eq!(answer["advice"][0]["patch"], Value::Null);
        assert_eq!(answer["left_out"]["advice[].patch"], json!({ "kept": 0, "of": 12000 }));
    }

    #[test]
    fn too_few_bytes_are_an_error_that_says_how_many_are_needed() {
        let value = findings(50, 10);
        let TooSmall { least_bytes } = bounded(&value, 20).unwrap_err();
        let answer = parsed(&bounded(&value, least_bytes).unwrap());
        assert_eq!((&answer["advice"], &answer["others"]), (&json!([]), &json!([])));
        assert!(bounded(&value, least_bytes - 1).is_err());
    }

    proptest! {
        #[test]
        fn answers_are_valid_and_never_longer(count in 0..40usize, callers in 0..9usize, max_bytes in 0..3000usize) {
            if let Ok(text) = bounded(&findings(count, callers), max_bytes) {
                prop_assert!(text.len() <= max_bytes, "{}", text);
                let answer = parsed(&text);
                let kept = answer["advice"].as_array().unwrap().len();
                let of = answer["left_out"]["advice"]["of"].as_u64();
                prop_assert_eq!(of, (kept < count).then_some(count as u64));
            }
        }
    }
}
