//! The edits of lines whose calls the shell can replace exactly, as all recorded calls from the
//! line show. `edit` then finds the calls in the script.

use std::collections::{BTreeMap, HashMap};

use super::call::{Call, Exact, ExactFor};
use super::call_of;
use super::row::Row;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::{Edit, EditRefusal, Form, NewCode, shell_sites};
use crate::explain::advice::phrases::name;
use crate::explain::advice::shared_line::arguments_of;
use crate::patterns::shells::Dialect;

/// Returns the edits of the lines that request launches of a program, those with the most launches
/// first. Calls with different arguments from one line may have different edits. Calls that no edit
/// is known for are left out.
pub(in crate::explain::advice) fn edits(context: &RuleContext<'_, '_>, program: &[u8], launches: &[u32]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for site in shell_sites(context, program, launches) {
        let mut forms: BTreeMap<NewCode, (Vec<u32>, bool)> = BTreeMap::new();
        let mut known: HashMap<_, Option<(NewCode, bool)>> = HashMap::new();
        for index in &site.launches {
            let [exec] = &context.launch(*index).execs[..] else { continue };
            let call = (exec.texts(), exec.argv_cut, Dialect::of_parent(context.forest(), *index as usize));
            let exact = known.entry(call).or_insert_with(|| recorded_form(context, *index));
            if let Some((form, is_exact)) = exact {
                let of_form = forms.entry(form.clone()).or_insert((Vec::new(), true));
                of_form.0.push(*index);
                of_form.1 &= *is_exact;
            }
        }
        for (form, (own, is_exact)) in forms {
            let inexact = "the replacement gives another result for some of the recorded arguments of";
            let form = if is_exact { Ok(form) } else { Err(EditRefusal(format!("{inexact} {}", name(program)))) };
            edits.extend(site.edit_of(context, program, &own, form));
        }
    }
    edits
}

/// Returns the code that replaces a call exactly, if a row has it.
fn exact(rows: &[Row], call: &Call) -> Option<Exact> {
    let find = |call: &Call| rows.iter().filter(|row| row.matches(call)).find_map(|row| row.substitute(call)?.exact);
    let mut arguments = call.arguments.clone();
    match arguments.first_mut().filter(|first| first.starts_with('-')) {
        Some(options) => options.push('q'),
        None => arguments.insert(0, "-q".to_owned()),
    }
    // The edit sees whether the output is used.
    let quiet = Call { program: call.program.clone(), arguments, ..*call };
    find(call).or_else(|| find(&quiet).filter(|_| matches!(&call.program[..], "grep" | "egrep" | "fgrep")))
}

/// Returns the code that replaces a recorded call, and whether it gives the same result for the
/// recorded arguments.
fn recorded_form(context: &RuleContext<'_, '_>, index: u32) -> Option<(NewCode, bool)> {
    let (rows, call) = call_of(context, index as usize)?;
    let arguments = arguments_of(context.launch(index).execs.first()?);
    Some(form_for_arguments(exact(rows, &call)?, &arguments))
}

fn form_for_arguments(exact: Exact, arguments: &[&[u8]]) -> (NewCode, bool) {
    let Exact { mut form, exact_for, limits } = exact;
    let needs_one_line = exact_for == ExactFor::Line;
    let mut is_exact = exact_for.includes(&form, arguments);
    let is_path = matches!(exact_for, ExactFor::Directory | ExactFor::Name { .. });
    if let (false, true, Form::Steps { steps, .. }) = (is_exact, is_path, &mut form) {
        // The slash of `for d in */` is removed first.
        steps.insert(0, "%/".to_owned());
        let paths: Vec<&[u8]> = arguments.iter().map(|word| word.strip_suffix(b"/").unwrap_or(word)).collect();
        is_exact = exact_for.includes(&form, &paths);
    }
    (NewCode { form, needs_one_line, limits }, is_exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::edit::tests::Calls;
    use crate::explain::advice::edit::tests::executed::check;
    use crate::explain::advice::rules::builtin::row::TABLE;

    /// Returns the code that replaces `echo ... | PROGRAM` in `$( )`.
    fn exact_form(program: &str, arguments: &[&str], dialect: Dialect) -> Option<Form> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let call = Call { program: program.to_owned(), arguments, dialect, is_fed: true, is_captured: true };
        exact(TABLE.get(program.as_bytes())?, &call).map(|exact| exact.form)
    }

    #[test]
    fn a_computed_condition_has_the_same_status() {
        let script = "for y in 'fix: a' 'fix(b): c' '' 'docs:' 'x fix: a' 'it'\\''s'; do\n  if ! echo \"$y\" | grep -qE '^(fix|docs)(\\([a-z]+\\))?: '; then echo \"$y\"; fi\ndone\n";
        let arguments = ["-qE", "^(fix|docs)(\\([a-z]+\\))?: "];
        let form = exact_form("grep", &arguments, Dialect::Bash).unwrap();
        check(&["bash"], "grep", &arguments, form, script, "if ! { grep_of_y='^(fix|docs)");
    }

    #[test]
    fn an_output_that_is_only_tested_needs_no_program() {
        let items = "for y in 'an apple' '' 'b*' pea; do\n";
        for (test, expected) in [
            ("echo \"$y\" | grep ap >/dev/null", "'ap'"),
            ("echo \"$y\" | grep ap >/dev/null 2>&1", "'ap'"),
            ("[ -n \"$(echo \"$y\" | grep ap)\" ]", "'ap'"),
            ("[ \"`echo $y | grep ap`\" ]", "'ap'"),
            ("test -z \"$(echo \"$y\" | grep ap)\" && echo no || true", "! "),
        ] {
            for (shell, dialect) in [("bash", Dialect::Bash), ("dash", Dialect::Posix)] {
                let form = exact_form("grep", &["ap"], dialect).unwrap();
                let script = format!("{items}  if {test}; then echo \"yes $y\"; fi\ndone\n");
                check(&[shell], "grep", &["ap"], form, &script, expected);
            }
        }
        let form = exact_form("grep", &["ap"], Dialect::Bash).unwrap();
        let calls = Calls::of("grep", &[&["ap"]], form);
        for used in [
            "echo \"$y\" | grep ap >&2",
            "echo \"$y\" | grep ap",
            "x=$(echo \"$y\" | grep ap)",
            "[ -n $(echo \"$y\" | grep ap) ]",
            "! [ -z \"$(echo \"$y\" | grep ap)\" ]",
        ] {
            calls.edit(2, &format!("{items}  {used}\ndone\n")).expect_err(used);
        }
    }

    #[test]
    fn the_text_that_matches_is_in_a_variable() {
        let code = |option: &str, pattern: &str| {
            let arguments = vec![option.to_owned(), pattern.to_owned()];
            let dialect = Dialect::Bash;
            let call = Call { program: "grep".to_owned(), arguments, dialect, is_fed: true, is_captured: true };
            let mut rows = TABLE[&b"grep"[..]].iter().filter(|row| row.matches(&call));
            rows.find_map(|row| row.substitute(&call)).map(|found| (found.after, found.exact.is_some()))
        };
        let expected = "y='[0-9]{8}'; [[ $x =~ $y ]]; y=${BASH_REMATCH[0]}".to_owned();
        assert_eq!(code("-oE", "[0-9]{8}"), Some((expected, false)));
        assert_eq!(code("-o", "a\\|b"), None);
    }

    #[test]
    fn the_slash_at_the_end_of_a_directory_is_no_part_of_its_name() {
        let make = "mkdir -p -- 'a b/in' '-x/in' 'n\nl/in' v1.d/in\n";
        for (program, recorded, expected) in [
            ("basename", &["./a b/"][..], "x=${p%/}; x=${x##*/}"),
            ("basename", &["./v1.d/", ".d"], "x=${p%/}; x=${x##*/}; x=${x%.d}"),
            ("dirname", &["./a b/in/"], "x=${p%/}; case $x in */*) x=${x%/*};; *) x=.;; esac"),
        ] {
            let arguments: Vec<&[u8]> = recorded.iter().map(|word| word.as_bytes()).collect();
            let words: Vec<String> = recorded.iter().map(|word| (*word).to_owned()).collect();
            let call = Call {
                program: program.to_owned(),
                arguments: words,
                dialect: Dialect::Bash,
                is_fed: false,
                is_captured: true,
            };
            let found = exact(&TABLE[program.as_bytes()], &call).unwrap();
            let (code, is_exact) = form_for_arguments(found.clone(), &arguments);
            assert!(is_exact, "{program}");
            let suffix = recorded.get(1).map_or(String::new(), |suffix| format!(" {suffix}"));
            let list = if program == "dirname" { "./*/*/" } else { "./*/" };
            let script = format!("{make}for p in {list}; do\n  x=$({program} \"$p\"{suffix})\n  echo \"$x\"\ndone\n");
            check(&["bash", "dash"], program, recorded, code.form, &script, expected);
            let root: Vec<&[u8]> = [&b"/"[..]].into_iter().chain(arguments.into_iter().skip(1)).collect();
            assert!(!form_for_arguments(found, &root).1, "{program} /");
        }
    }

    #[test]
    fn a_path_may_have_no_slash() {
        let arguments = ["a/b"];
        let words = arguments.map(str::to_owned).to_vec();
        let (program, dialect) = ("dirname".to_owned(), Dialect::Posix);
        let call = Call { program, arguments: words, dialect, is_fed: false, is_captured: true };
        let form = exact(&TABLE[&b"dirname"[..]], &call).unwrap().form;
        let check = |script: &str, expected: &str| {
            check(&["bash", "dash"], "dirname", &arguments, form.clone(), script, expected);
        };
        let loops =
            "while read -r p; do\n  [ \"$p\" ] && x=$(dirname \"$p\")\n  echo \"$x\"\ndone <<E\na/b\nb\n./c d\n-\nE\n";
        check(loops, "&& case $p in */*) x=${p%/*};; *) x=.;; esac");
        check("f() {\n  echo \"<$(dirname \"$1\")>\"\n}\nf a/b; f b; f 'c d'\n", "case $1 in */*) dirname_result=");
        check("f() {\n  local x=$(dirname \"$1\")\n  echo \"<$x>\"\n}\nf a/b; f b; f 'c d'\n", "local x; case");
        check("mkdir d; : >d/a; for p in d/*; do\n  echo \"$(dirname \"$p\")\"\ndone\n", "\"${p%/*}\"");
        check("for p in a b/c; do\n  p=x/$p\n  x=$(dirname \"$p\")\n  echo \"$x\"\ndone\n", "case $p in");
        check("cd \"$(dirname \"$0\")\"\necho $?\n", "case $0 in");
    }

    #[test]
    fn the_shell_reads_the_first_line_of_a_file() {
        let make = "printf 'a b\\\\n\\nc\\n' >x.c; printf 'no end' >two; : >empty\n";
        for recorded in [&["-n1", "./x.c"][..], &["-n", "1", "./x.c"]] {
            let form = exact_form("head", recorded, Dialect::Posix).unwrap();
            let call = format!("head {} \"$f\"", recorded[..recorded.len() - 1].join(" "));
            let script = format!("{make}for f in ./x.c ./two ./empty; do\n  x=$({call})\n  echo \"[$x]\"\ndone\n");
            let read = "x=; { IFS= read -r x || :; } <\"$f\"\n";
            check(&["bash", "dash"], "head", recorded, form.clone(), &script, read);
            let body = format!("  local x=$({call})\n  echo \"[$x]\"\n");
            let script = format!("set -e\n{make}f() {{\n  f=$1\n{body}}}\nf ./x.c; f ./none\necho end\n");
            let read = "local x; x=; { IFS= read -r x || :; } <\"$f\" || :\n";
            check(&["bash", "dash"], "head", recorded, form, &script, read);
        }
    }

    #[test]
    fn sh_compares_a_text_with_an_expression() {
        for (expression, expected) in [
            ("[[:space:]]$", "in *[[:space:]]) true"),
            ("^[0-9]+$", "in '' | *[!0-9]*) false"),
            ("^v[0-9].*\\.c$", "in v[0-9]*.c) true"),
            ("a.*[bc]", "in *a*[bc]*) true"),
            ("^\\*", "in \\**) true"),
        ] {
            let arguments = ["-qE", expression];
            let form = exact_form("grep", &arguments, Dialect::Posix).unwrap();
            let texts = "'' 1 12 '1 2' a 'a ' v1.c v1xc vv.c 'v2 b.c' cab abc '*' 'x*' 'x[b' '-n' '!'";
            let script = format!(
                "for y in {texts}; do\n  if printf '%s\\n' \"$y\" | grep -qE '{expression}'; then echo \"$y\"; fi\ndone\n"
            );
            check(&["bash", "dash"], "grep", &arguments, form, &script, expected);
        }
        for refused in ["a+", "^[^a]$", "(a|b)", "^[a-z]*$", "^.$", "[é]", "a{2}", "^[a-z]+[0-9]+$"] {
            assert!(exact_form("grep", &["-qE", refused], Dialect::Posix).is_none(), "{refused}");
        }
        assert!(exact_form("grep", &["-q", "^[0-9][0-9]*$"], Dialect::Posix).is_some());
    }

    #[test]
    fn expr_is_computed_by_the_shell() {
        let row = |arguments: &[&str], code: &str, shells: &[&str]| {
            let form = exact_form("expr", arguments, if shells.len() > 1 { Dialect::Posix } else { Dialect::Bash });
            let script = format!("for n in 1 7 12 -3; do\n  s=v$n.2\n  x=$(expr {code}) || :\n  echo \"$x\"\ndone\n");
            let words: Vec<&str> = arguments.to_vec();
            check(shells, "expr", &words, form.unwrap(), &script, "x=");
        };
        row(&["(", "7", "+", "1", ")", "*", "60"], "\\( $n + 1 \\) \\* 60", &["bash", "dash"]);
        row(&["7", "%", "5", "-", "2"], "$n % 5 - 2", &["bash", "dash"]);
        row(&["v7.2", ":", "v\\([0-9]*\\)\\..*"], "\"$s\" : 'v\\([0-9]*\\)\\..*'", &["bash"]);
        for code in ["v\\(.*\\)\\.2$", "v\\(.*\\)", ".*\\.\\(.*\\)", "[^.]*\\.\\(.*\\)", "^v1\\(.*\\)"] {
            row(&["v17.2", ":", code], &format!("\"$s\" : '{code}'"), &["bash", "dash"]);
        }
        for refused in [".\\(.*\\)", "v[^.]*\\(.*\\)", "v\\(.*\\)2", "[^.]*.\\(.*\\)", "\\(v*\\)"] {
            assert!(exact_form("expr", &["v7.2", ":", refused], Dialect::Posix).is_none(), "{refused}");
        }
        for refused in [&["7", "+", "07"][..], &["v", ":", "v.*"], &["7", "|", "0"]] {
            assert!(exact_form("expr", refused, Dialect::Bash).is_none() || refused.contains(&"07"), "{refused:?}");
        }
    }

    /// The code that the rules compute from the arguments.
    #[test]
    fn computed_code_does_what_the_programs_do() {
        let calls: [(&str, &[&str]); 46] = [
            ("cut", &["-d ", "-f3"]),
            ("cut", &["-d ", "-f1"]),
            ("cut", &["-d=", "-f2"]),
            ("cut", &["-d=", "-f1-2"]),
            ("cut", &["-d ", "-f", "1-3"]),
            ("cut", &["-f1-2", "-d\""]),
            ("sed", &["s/with space/x y/"]),
            ("sed", &["s/^with //"]),
            ("sed", &["s/^with //; s/\\.c$//"]),
            ("sed", &["-e", "s/a/A/", "-e", "s|=|/|g;"]),
            ("sed", &["s/\\..*//"]),
            ("sed", &["s/^.*\\/(//"]),
            ("sed", &["-E", "s/[.]c$/.o/"]),
            ("sed", &["s/^a/+/;s/\"//g"]),
            ("sed", &["s/[^0-9]*//g"]),
            ("sed", &["s/[0-9]*$//"]),
            ("sed", &["-E", "s/^[[:space:]]+//; s/[[:space:]]+$//"]),
            ("sed", &["s/^ *//;s/ *$//"]),
            ("sed", &["s/[a=]*//"]),
            ("sed", &["s/[0-9]/#/g"]),
            ("sed", &["s/^[^0-9]*//"]),
            ("sed", &["s/.*[0-9]//"]),
            ("sed", &["s/[0-9].*$//"]),
            ("sed", &["s/^[0-9]/+/"]),
            ("cut", &["-d=", "-f", "2-"]),
            ("cut", &["-c2-3"]),
            ("cut", &["-c", "3-"]),
            ("tr", &["-d", " c"]),
            ("tr", &["=", "/"]),
            ("tr", &["-d", "\""]),
            ("tr", &["=", "-"]),
            ("tr", &["-", "_"]),
            ("sed", &["s%/[^/]*$%%"]),
            ("sed", &["-e", "s/\\.[^.]*$//"]),
            ("sed", &["s/^[^=]*=//"]),
            ("sed", &["s/[^ ]* //"]),
            ("sed", &["s/^[a-z]* *\\([^ ]*\\).*$/\\1/"]),
            ("sed", &["-E", "s/.*(.)=(.)$/\\2-\\1/"]),
            ("sed", &["s/.*\\([0-9]\\+\\).*/v\\1/"]),
            ("sed", &["-r", "s|^/.(.).*$|\\1|"]),
            ("head", &["-c1"]),
            ("head", &["-c", "3"]),
            ("cut", &["-c1"]),
            ("cut", &["-c", "2-"]),
            ("wc", &["-c"]),
            ("wc", &["-m"]),
        ];
        for (program, arguments) in calls {
            let words = arguments.join("' '");
            let script = format!(
                "for y in 'a b  c' '' x= 'a=b=c' 'with space' 'with x.c.c' '/(\"a/(' ab.c ' 1a2 ' 12 7up a1b22 =b=c=; do\n  x=$y\n  x=$(echo \"$x\" | {program} '{words}')\n  echo \"$x\"\ndone\n"
            );
            for (shell, dialect) in [("bash", Dialect::Bash), ("dash", Dialect::Posix)] {
                let Some(form) = exact_form(program, arguments, dialect) else {
                    assert_eq!(shell, "dash", "{program} {arguments:?}");
                    continue;
                };
                check(&[shell], program, arguments, form, &script, "x=");
            }
        }
    }
}
