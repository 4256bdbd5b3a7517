//! Tests of the structure of scripts.

use super::{Kind, Script};

/// Returns the simple commands of a script, each with the kinds of its ancestors.
fn shown(text: &str) -> Option<Vec<String>> {
    let script = Script::parse(text.as_bytes())?;
    let kind = |index: usize| match script.kind(index) {
        Kind::List { .. } | Kind::Pipeline { .. } | Kind::Simple(_) => "",
        Kind::For(_) => "for ",
        Kind::Loop { .. } => "loop ",
        Kind::Function => "function ",
        Kind::Compound => "compound ",
        Kind::Subshell => "subshell ",
        Kind::Substitution => "substitution ",
        Kind::Expression(_) => "expression ",
    };
    let commands = (0..script.len()).filter(|index| script.simple(*index).is_some());
    let commands = commands.map(|index| {
        let around: String = script.ancestors(index).map(kind).collect();
        format!("{around}{}", String::from_utf8_lossy(script.code(index)))
    });
    Some(commands.collect())
}

#[test]
fn commands_are_found_with_what_is_around_them() {
    for (text, expected) in [
        ("a 'b;c' \"d | e\" # f\ng", &["a 'b;c' \"d | e\"", "g"][..]),
        ("a | b && c || d & e;", &["a", "b", "c", "d", "e"]),
        ("x=$(a | b) y=`c`", &["x=$(a | b) y=`c`", "substitution a", "substitution b", "substitution c"]),
        (
            "a \"$(b \"$(c \")\")\")\"",
            &["a \"$(b \"$(c \")\")\")\"", "substitution b \"$(c \")\")\"", "substitution substitution c \")\""],
        ),
        ("for x in a b; do c; done | d", &["for c", "d"]),
        ("while a; do b\ndone <c", &["loop a", "loop b"]),
        ("for ((i = 0; i < 3; i++)); do b; done", &["loop b"]),
        ("f() { a; }; function g { b; }", &["compound function a", "compound function b"]),
        ("(a; b) >c", &["subshell a", "subshell b"]),
        (
            "if a; then b; elif c; then d; else e; fi",
            &["compound a", "compound b", "compound c", "compound d", "compound e"],
        ),
        ("case $x in (a|b*) c;; *) d;& e) esac", &["compound c", "compound d"]),
        ("cat <<END | b\n$(a) ) '\nEND\nc", &["cat <<END", "b", "c"]),
        ("cat <<-'E F'\n\ta\n\tE F\nc", &["cat <<-'E F'", "c"]),
        ("[[ $a =~ ^(b|c)$ && -n $(d) ]] && e", &["substitution expression d", "e"]),
        ("((a = $(b))) && c", &["substitution expression b", "c"]),
        (
            "a $((1 + (2))) $( (b) ) ${c:-$(d)} <(e)",
            &["a $((1 + (2))) $( (b) ) ${c:-$(d)} <(e)", "subshell substitution b", "substitution d", "substitution e"],
        ),
        ("a=(b $(c)) d", &["a=(b $(c)) d", "substitution c"]),
        ("a \\\n  b 2>&1 >/dev/null", &["a \\\n  b 2>&1 >/dev/null"]),
        ("! time a", &["a"]),
        ("echo ${#a} $# ${a#b} a#b", &["echo ${#a} $# ${a#b} a#b"]),
        ("echo @(a|b) {a,b} $'it\\'s'", &["echo @(a|b) {a,b} $'it\\'s'"]),
        ("", &[]),
    ] {
        assert_eq!(
            shown(text).as_deref(),
            Some(&expected.iter().map(|each| (*each).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
}

#[test]
fn what_is_not_known_is_not_read() {
    for text in [
        "a 'b", "a \"b", "$(a", "`a", "for x in a", "if a; then b", "a)", "fi", "a;; b", "case x in a) b",
        "cat <<E\na", "${a", "a (",
    ] {
        assert_eq!(shown(text), None, "{text}");
    }
    assert_eq!(shown(&"(".repeat(10_000)), None);
    assert_eq!(shown(&"$((".repeat(200)), None);
}

#[test]
fn code_that_may_set_a_variable_is_found() {
    for (text, expected) in [
        ("x=1", true),
        ("x=1 a", true),
        ("for x in a; do b; done", true),
        ("a | while read -r y x; do b; done", true),
        ("printf -v x a", true),
        ("printf '%s' x", false),
        ("((x++))", true),
        ("echo $((x += 1))", true),
        ("echo ${x:=1}", true),
        ("echo ${x:-1} $x x 'x=1'", false),
        ("eval a", true),
        (". a", true),
        ("local x=1", true),
        ("y=$x", false),
        ("f() { x=1; }", true),
        ("xy=1", false),
        ("[[ $x =~ y && x != z ]]", false),
        ("[[ x -eq 1 ]]", true),
    ] {
        let script = Script::parse(text.as_bytes()).unwrap();
        assert_eq!(script.may_set(&(0..text.len()), b"x"), expected, "{text}");
    }
    let text = b"[[ $x =~ y ]]";
    assert!(Script::parse(text).unwrap().may_set(&(0..text.len()), b"BASH_REMATCH"));
    let text = b"f() { x=1; }\nf";
    assert!(Script::parse(text).unwrap().may_set(&(13..14), b"x"));
}
