//! Runs the code that advice shows before and after `->` on the same texts. Both print the same, or
//! the advice describes the difference.

use std::process::Command;

use crate::recordings::{advice_on_captured_output, advice_on_substitutions, fix_of};
use crate::serial::only;

/// Texts on which a filter program and a shell expansion may differ.
const TEXTS: [&str; 58] = [
    "", "a", "b", "abc", "aba", "a b", " a", "a ", "a  b", "\ta\tb", "a\n", "a\nb", "\n", "\n\na", "-n", "-e", "-x",
    "--", "a\\tb", "\\", "%", "%a", "a%", "a%a", "a%b%a", "%%", "#", "#a", "a#", "a#b#", "a&b", "&", "~", "a~", "!",
    "a!b", "'a'", "\"a\"", "*", "a*b", "?", "[a]", "$HOME", "`a`", "émile", "aé", ":", ":a", "a:", "a:b", "a::b",
    "a:b:c:d", "a|b|c", "a=b", "a-b-c", "lib-a", "a,b", "x.y.z",
];
/// Paths on which dirname, basename or sed and a shell expansion may differ.
const PATHS: [&str; 22] = [
    "", "a", "a/", "/", "//", "/a", "//a", "a/b", "a//b", "/a/b/", ".a", "a.c", ".c", "d/.c", "a.c.c", "a b/c d",
    "a\n", "a/b\n", "-n", "-a/b", "*/?", "é/b.c",
];

/// A launch from a shell, and the texts that its advice is tested on.
struct Call<'c> {
    shell: &'c str,
    argv: &'c [&'c str],
    /// Whether a fork of the shell writes the program's standard input.
    is_fed: bool,
    texts: &'c [&'c str],
    /// Texts for which the two forms differ, each with the words by which the advice describes the
    /// difference.
    described: &'c [(&'c str, &'c str)],
}

const BASH: &str = "/bin/bash";
const DASH: &str = "/bin/dash";

fn new_call<'c>(shell: &'c str, argv: &'c [&'c str], texts: &'c [&'c str]) -> Call<'c> {
    Call { shell, argv, is_fed: false, texts, described: &[] }
}

/// Returns the code in the script, its replacement, and the described differences.
fn advised(call: &Call<'_>) -> (String, String, String) {
    let findings = if call.is_fed {
        advice_on_substitutions(call.shell, 40, call.argv)
    } else {
        advice_on_captured_output(call.shell, call.argv)
    };
    let advice = only(&findings, "builtin");
    let fix = fix_of(&advice);
    let (_, shown) = fix.split_once('\n').unwrap();
    let (before, after) = shown.split_once("  ->  ").unwrap();
    let after = after.rsplit_once("   (").unwrap().0;
    (before.trim().to_owned(), after.to_owned(), advice.finding.limits)
}

/// Returns a script that prints the results of both forms for each of its arguments. If the new
/// form is a word, it is tested alone and in double quotes.
fn script(before: &str, after: &str) -> String {
    let substitution = before.find("$(").map(|at| &before[at..]);
    let first = match substitution {
        Some(substitution) => format!("y={substitution}"),
        None => format!("if {before} >/dev/null; then y=yes; else y=no; fi"),
    };
    let is_word = after.starts_with('$');
    let second = match (is_word, substitution) {
        (true, _) => format!("y={after}; z=\"{after}\"; [ \"$y\" = \"$z\" ] || y=\"not in quotes: $z\""),
        (false, Some(_)) => {
            let beginnings = [("mapfile", "n"), ("b=", "b"), ("printf -v", "t"), ("IFS= read -r x", "x")];
            let set = beginnings.iter().find(|(beginning, _)| after.starts_with(beginning));
            let variable = set.map_or("y", |(_, variable)| variable);
            format!("{after}; y=${variable}")
        }
        (false, None) => {
            format!("y=no; if {after}; then y=yes; fi")
        }
    };
    format!(
        "newline='\n'; f=$(mktemp)\n\
         for text in \"$@\"; do\n\
         x=$text p=$text s=$text a=${{text%%|*}} b=${{text#*|}}; printf %s \"$text\" >\"$f\"\n\
         y=unset\n{first}\nprintf '%s\\0' \"$y\"\n\
         x=$text p=$text; y=unset\n{second}\nprintf '%s\\0' \"$y\"\n\
         done 2>/dev/null\nrm -f \"$f\"\n"
    )
}

/// Returns the results of both forms for each text.
fn answers(call: &Call<'_>, script: &str) -> Vec<(String, String)> {
    let output = Command::new(call.shell)
        .args(["-c", script, "both"])
        .args(call.texts)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let printed: Vec<&str> = text.split_terminator('\0').collect();
    assert_eq!(printed.len(), 2 * call.texts.len(), "{:?}: {script}\n{printed:?}", call.argv);
    let pairs = printed.chunks(2);
    pairs.map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// Whether the advice describes why the two forms differ for a text.
fn is_described(text: &str, [first, second]: [&str; 2], limits: &str, described: &[(&str, &str)]) -> bool {
    let echo = text == "-n" || text == "-e" || text.contains('\\');
    first == second.trim_end_matches('\n') && limits.contains("newlines at the end")
        || text.contains('\n') && limits.contains("one line")
        || echo && limits.contains("what echo interprets")
        || described.iter().any(|(special, words)| *special == text && limits.contains(words))
}

fn assert_differs_only_where_described(call: &Call<'_>) {
    let (before, after, limits) = advised(call);
    let answers = answers(call, &script(&before, &after));
    let name = format!("{} {:?}: {before} -> {after}", call.shell, call.argv);
    for (text, (first, second)) in call.texts.iter().zip(&answers) {
        assert!(
            first == second || is_described(text, [first, second], &limits, call.described),
            "{name}: {text:?} gives {first:?} and {second:?}, but: {limits}"
        );
    }
    for (text, words) in call.described {
        let at = call.texts.iter().position(|each| each == text).unwrap();
        assert_ne!(answers[at].0, answers[at].1, "{name}: {text:?} is covered by {words:?}");
    }
}

#[test]
fn an_expansion_does_what_sed_does() {
    for script in [
        "s/a/b/", "s/a/b/g", "s/%a/b/", "s/%/x/", "s/%/x/g", "s/%a/b/g", "s/#/x/", "s/#a/b/", "s/a%/b%/", "s/!/x/",
        "s/~/x/", "s/&/x/g", "s/é/e/g", "s/a/#/", "s/a/%/g", "s/:/ /g", "s,:,/,g", "s,a,|,", "s/ /_/g", "s/-a/x/",
        "s/--/x/", "s/=/:/", "s/a//g", "s/a/a.b!/", "s/a/x*y?/g",
    ] {
        assert_differs_only_where_described(&new_call(BASH, &["sed", script], &TEXTS));
    }
    for shell in [BASH, DASH] {
        for script in [
            "s/%$//", "s/^%//", "s/%.*//", "s/^.*%//", "s/#.*//", "s/.*#//", "s/#.*$//", "s/^#//", "s/-.*//",
            "s/^lib-//", "s/!$//", "s/~$//", "s/&.*//", "s/=.*//", "s/.*=//", "s,^.*/,,", "s,/.*,,", "s/ .*//",
            "s/^ //", "s/é$//", "s/a$//", "s/:.*//", "s/a%$//", "s/%%$//",
        ] {
            assert_differs_only_where_described(&new_call(shell, &["sed", script], &TEXTS));
        }
        for script in ["s/a/b/", "s/a/x y/", "s/a-b/%/", "s,b,/,", "s/#/x/"] {
            assert_differs_only_where_described(&new_call(shell, &["sed", script], &TEXTS));
        }
        assert_differs_only_where_described(&new_call(shell, &["sed", "s,^.*/,,"], &PATHS));
        assert_differs_only_where_described(&new_call(shell, &["sed", "s,/.*,,"], &PATHS));
    }
}

#[test]
fn an_expansion_does_what_tr_does() {
    let letters = [("émile", "LC_ALL=C"), ("aé", "LC_ALL=C")];
    for argv in [["tr", "a-z", "A-Z"], ["tr", "[:lower:]", "[:upper:]"]] {
        assert_differs_only_where_described(&Call { described: &letters, ..new_call(BASH, &argv, &TEXTS) });
    }
    for argv in [
        ["tr", "A-Z", "a-z"],
        ["tr", "-d", "a"],
        ["tr", "-d", ":a:"],
        ["tr", "-d", "%#"],
        ["tr", "-d", "=a="],
        ["tr", "-d", "a b~&"],
    ] {
        assert_differs_only_where_described(&new_call(BASH, &argv, &TEXTS));
    }
    for character in "a:.%#/!~&*?[]{}()<>|;,^@+=_$`\" ".chars().map(String::from) {
        assert_differs_only_where_described(&new_call(BASH, &["tr", &character, "x"], &TEXTS));
        if !"[]{}()~&$`\"".contains(&character) {
            assert_differs_only_where_described(&new_call(BASH, &["tr", "a", &character], &TEXTS));
        }
    }
}

#[test]
fn an_expansion_does_what_cut_does() {
    let option_pairs: Vec<String> = ":-.%#/!~&*?[]{}()<>|;,^@+=$`\" "
        .chars()
        .flat_map(|delimiter| ["1", "2"].map(|field| format!("-d{delimiter} -f{field}")))
        .collect();
    for shell in [BASH, DASH] {
        for options in &option_pairs {
            let (delimiter, field) = options.rsplit_once(' ').unwrap();
            let texts = ["a", "a:b", ":a", "a:", "a:b:c", "a::c", "::", " a: b :c", "a\n", "a:b\nc:d"]
                .map(|text| text.replace(':', &delimiter[2..]));
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            assert_differs_only_where_described(&new_call(shell, &["cut", delimiter, field], &texts));
        }
        for delimiter in ["-d:", "-d%"] {
            assert_differs_only_where_described(&new_call(shell, &["cut", delimiter, "-f2"], &TEXTS));
        }
        let texts = ["", "a", "a:b", "a:", ":a", "a:b:c", "a::c", "::", "a:b:c:d", "::c:"];
        assert_differs_only_where_described(&new_call(shell, &["cut", "-d:", "-f3"], &texts));
    }
}

#[test]
fn an_expansion_does_what_awk_and_head_do() {
    for shell in [BASH, DASH] {
        for field in ["$1", "$2", "$3"] {
            let program = format!("{{ print {field} }}");
            assert_differs_only_where_described(&new_call(shell, &["awk", &program], &TEXTS));
        }
        for program in ["{print $1}", "{print $2}", "{ print $4 }"] {
            assert_differs_only_where_described(&new_call(shell, &["awk", "-F:", program], &TEXTS));
        }
        assert_differs_only_where_described(&new_call(shell, &["head", "-n1"], &TEXTS));
        assert_differs_only_where_described(&new_call(shell, &["head", "-n1", "file"], &TEXTS));
    }
}

#[test]
fn an_expansion_does_what_dirname_and_basename_do() {
    for shell in [BASH, DASH] {
        let paths: Vec<&str> = PATHS.into_iter().filter(|path| !path.starts_with('-')).collect();
        let bare = ["", "a", ".a", "a.c", ".c", "a.c.c", "a\n"].map(|path| (path, "without a slash"));
        let others =
            [("/", "/name"), ("/a", "/name"), ("a/", "at the end"), ("/a/b/", "at the end"), ("a//b", "in a row")];
        assert_differs_only_where_described(&Call {
            described: &[&bare[..], &others].concat(),
            ..new_call(shell, &["dirname", "a/b"], &paths)
        });
        let slashes = [
            ("a/", "ends with a slash"),
            ("/", "ends with a slash"),
            ("//", "ends with a slash"),
            ("/a/b/", "ends with a slash"),
        ];
        assert_differs_only_where_described(&Call {
            described: &slashes,
            ..new_call(shell, &["basename", "a/b"], &paths)
        });
        let suffix = [&slashes[..], &[(".c", "is the whole name"), ("d/.c", "is the whole name")]].concat();
        assert_differs_only_where_described(&Call {
            described: &suffix,
            ..new_call(shell, &["basename", "a/b.c", ".c"], &paths)
        });
    }
}

#[test]
fn an_expansion_does_what_cat_and_wc_do() {
    let files = ["", "a", "a b ", " a", "a\\b\n", "-n", "a\n\n"];
    let lines = ["a\nb", "a\nb\n", "\n", "\n\na"];
    assert_differs_only_where_described(&new_call(BASH, &["cat", "file"], &[&files[..], &lines].concat()));
    assert_differs_only_where_described(&new_call(DASH, &["cat", "file"], &[&files[..], &lines].concat()));
    assert_differs_only_where_described(&Call {
        described: &[("a", "last line without a newline"), ("a\nb", "last line without a newline")],
        ..new_call(BASH, &["wc", "-l"], &["", "a", "a\n", "a\nb", "a\nb\n", "\n"])
    });
}

#[test]
fn searching_and_counting_in_a_variable_do_what_grep_and_wc_do() {
    fn fed<'c>(shell: &'c str, argv: &'c [&'c str]) -> Call<'c> {
        Call { is_fed: true, ..new_call(shell, argv, &TEXTS) }
    }
    for pattern in ["a", "a b", "%", "#", "a:b", "~", "&", "!"] {
        for shell in [BASH, DASH] {
            assert_differs_only_where_described(&fed(shell, &["grep", "-q", pattern]));
        }
        assert_differs_only_where_described(&fed(BASH, &["grep", "-qF", "-e", pattern]));
    }
    for (options, pattern) in [
        ("-qF", "a*"),
        ("-qF", "[a]"),
        ("-qF", "$HOME"),
        ("-q", "^a"),
        ("-q", "a$"),
        ("-q", "a.*b"),
        ("-q", "[ab]c"),
        ("-qE", "a+|b"),
        ("-qE", "(a|b):"),
        ("-q", "^a*b"),
        ("-q", "a"),
        ("-q", "%"),
    ] {
        assert_differs_only_where_described(&fed(BASH, &["grep", options, pattern]));
    }
    assert_differs_only_where_described(&fed(BASH, &["wc", "-m"]));
    let more = [("émile", "counts characters"), ("aé", "counts characters")];
    assert_differs_only_where_described(&Call { described: &more, ..fed(BASH, &["wc", "-c"]) });
}

#[test]
fn arithmetic_and_comparisons_do_what_expr_does() {
    for (operator, texts) in [
        ("+", ["1|2", "0|0", "-1|1", "10|-3"]),
        ("-", ["1|2", "0|0", "-1|1", "10|-3"]),
        ("*", ["3|2", "0|5", "-1|1", "10|-3"]),
        ("/", ["7|2", "0|5", "-7|2", "10|-3"]),
        ("%", ["7|2", "0|5", "-7|2", "10|-3"]),
    ] {
        for shell in [BASH, DASH] {
            assert_differs_only_where_described(&new_call(shell, &["expr", "3", operator, "4"], &texts));
        }
        assert_differs_only_where_described(&Call {
            described: &[("010|3", "octal"), ("|1", "as 0"), ("z|3", "variable name")],
            ..new_call(BASH, &["expr", "3", operator, "4"], &["010|3", "|1", "z|3"])
        });
    }
    for operator in ["<", "<=", ">", ">=", "=", "!="] {
        let texts = ["1|2", "2|1", "1|1", "01|1", "-1|1", "10|9"];
        assert_differs_only_where_described(&new_call(DASH, &["expr", "3", operator, "4"], &texts));
    }
    for operator in ["=", "!="] {
        let texts = ["a|b", "a|a", "Xa b|Xa b", "X|X", "X*|Xa"];
        assert_differs_only_where_described(&new_call(DASH, &["expr", "Xa", operator, "Xb"], &texts));
    }
    assert_differs_only_where_described(&new_call(BASH, &["expr", "length", "abc"], &["", "a", "a b", "é", "a\n"]));
}

#[test]
fn bash_formats_a_date_as_date_does() {
    for format in ["+%Y-%m-%d", "+%F", "+%y%j", "+week %V of %G", "+%-d.%_m.%Y", "+%A %B %Z", "+100%%", "+today"] {
        // Midnight may pass between the two forms, so they may differ once.
        let argv = ["date", format];
        let compare =
            || std::panic::catch_unwind(|| assert_differs_only_where_described(&new_call(BASH, &argv, &["x"])));
        assert!(compare().is_ok() || compare().is_ok(), "{format}");
    }
}
