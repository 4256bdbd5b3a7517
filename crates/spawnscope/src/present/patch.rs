//! Unified diffs for `patch -p0` and `git apply -p0`.

use std::ops::Range;

use similar::{Algorithm, ChangeTag, DiffTag, TextDiff};

use super::text;

const CONTEXT: usize = 3;

/// Whether a line can be shown as it is: it is UTF-8, and tabs are its only control characters.
pub fn is_printable(line: &[u8]) -> bool {
    line.split(|byte| *byte == b'\t').all(|part| text::escape(part).as_bytes() == part)
}

/// Whether the header of a diff can contain this name without quotes.
pub fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['"', '\\']) && text::escape(name.as_bytes()) == name
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn difference<'l>(before: &'l [&'l [u8]], after: &'l [&'l [u8]]) -> TextDiff<'l, 'l, [u8]> {
    TextDiff::configure().algorithm(Algorithm::Myers).newline_terminated(true).diff_slices::<[u8]>(before, after)
}

/// Returns the lines that differ between two texts, from 0, as groups of adjacent lines.
pub fn changed_lines(before: &[u8], after: &[u8]) -> Vec<[Range<usize>; 2]> {
    let [before, after] = [before, after].map(lines);
    let difference = difference(&before, &after);
    let changes = difference.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    changes.map(|op| [op.old_range(), op.new_range()]).collect()
}

pub fn unified(name: &str, before: &[u8], after: &[u8]) -> Result<Vec<u8>, String> {
    let [before, after] = [before, after].map(lines);
    let diff = difference(&before, &after);
    // After a tab, the header has the time. Without the tab, `patch` would end a name at its first
    // space.
    let end = if name.contains(' ') { "\t" } else { "" };
    let mut patch = format!("--- {name}{end}\n+++ {name}{end}\n").into_bytes();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        patch.extend(format!("{}\n", hunk.header()).into_bytes());
        for change in hunk.iter_changes() {
            let line = change.value();
            let (text, has_newline) = line.strip_suffix(b"\n").map_or((line, false), |text| (text, true));
            if !is_printable(text) {
                return Err("the lines around the change contain control characters, or are not UTF-8".to_owned());
            }
            patch.push(match change.tag() {
                ChangeTag::Equal => b' ',
                ChangeTag::Delete => b'-',
                ChangeTag::Insert => b'+',
            });
            patch.extend(text);
            patch.extend(if has_newline { &b"\n"[..] } else { b"\n\\ No newline at end of file\n" });
        }
    }
    Ok(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        String::from_utf8(unified("a b.sh", before.as_bytes(), after.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn near_changes_share_a_hunk() {
        let text = |changed: &[usize]| {
            let line = |number| if changed.contains(&number) { format!("{number}!\n") } else { format!("{number}\n") };
            (1..=20).map(line).collect::<String>()
        };
        let diff = shown(&text(&[]), &text(&[2, 7, 17]));
        let hunks: Vec<&str> = diff.lines().filter(|line| line.starts_with("@@")).collect();
        assert_eq!(hunks, ["@@ -1,10 +1,10 @@", "@@ -14,7 +14,7 @@"]);
        assert!(diff.starts_with("--- a b.sh\t\n+++ a b.sh\t\n@@ -1,10"), "{diff}");
    }

    #[test]
    fn a_missing_newline_is_marked() {
        let diff = shown("a\nb", "a\nc");
        let end = "\\ No newline at end of file\n";
        assert_eq!(diff, format!("--- a b.sh\t\n+++ a b.sh\t\n@@ -1,2 +1,2 @@\n a\n-b\n{end}+c\n{end}"));
    }

    #[test]
    fn only_printable_lines_are_in_a_diff() {
        assert!(unified("a", b"\xff\n1\n2\n3\n4\nb", b"\xff\n1\n2\n3\n4\nc").is_ok());
        for context in [&b"\xff"[..], b"\x1b[2J", b"a\r", "\u{202e}".as_bytes()] {
            let text = |last: &[u8]| [context, b"\n\tx\n", last].concat();
            assert!(unified("a", &text(b"b"), &text(b"c")).is_err(), "{context:?}");
        }
    }
}
