//! The lines of dash scripts that request launches: every construct for which dash forks, each with
//! its expected line. Dash stores neither callers nor the file of a function. What is not certain
//! is unknown, never guessed.

use std::collections::BTreeSet;

use crate::support::chains::{NOT_LAUNCHED, Shell, chain_of, labelled_chains};
use crate::support::run::Record;
use crate::support::workloads::word;
use crate::support::{apply, live_test};

live_test! {
    #[needs(Cc)]
    fn dash_commands_and_pipelines_have_their_line = commands(&dash());
    fn dash_subshells_and_substitutions_have_their_line = subshells(&dash());
    fn dash_functions_have_the_file_that_defines_them = functions(&dash());
    fn dash_names_the_file_that_it_reads_and_no_line_of_what_it_evaluates = other_texts(&dash());
    fn dash_code_without_a_file_has_lines_without_a_file = without_file(&dash());
}

// Where a script may source files, its shell counts for a while at the end: in another root, files
// can be read only as long as it runs.

/// All these checks; `suites.rs` makes them with other versions of dash.
pub const CHECKS: [fn(&Shell); 5] = [commands, subshells, functions, other_texts, without_file];

fn dash() -> Shell {
    Shell::installed("dash")
}

fn choose<'s>(condition: bool, yes: &'s str, no: &'s str) -> &'s str {
    if condition { yes } else { no }
}

fn commands(shell: &Shell) {
    let script = "\
@t top
if @t condition; then @t body; fi

@t pipe1 | @t pipe2 | @t pipe3
@t background &
wait
for i in 1 2; do
  @t \"loop$i\" | @t \"behind$i\"
  @t \"single$i\"
done
@t several \\
  words
! @t negated
false || @t either
echo built-in | @t behind_built_in
case x in *) @t branch ;; esac
@t here <<X

X
exit 0
";
    let truth = [
        ("loop1", "main.sh:8"),
        ("behind1", "main.sh:8"),
        ("single1", "main.sh:9"),
        ("loop2", "main.sh:8"),
        ("behind2", "main.sh:8"),
        ("single2", "main.sh:9"),
        ("several", NOT_LAUNCHED),
        ("words", "main.sh:11"),
    ];
    shell.expect_own_lines(script, &truth);
    // Busybox forks to fill a here-document as well.
    if shell.label() == "(dash)" {
        shell.expect(script, &[], &[("(dash)", "main.sh:15")]);
    }
}

fn subshells(shell: &Shell) {
    let script = "\
:
(@t subshell1; @t subshell2; :)
x=$(@t substituted; :)
x=$(:
  @t on_two_lines; :
)
x=`@t quoted; :`
x=`@t quoted1 | @t quoted2; :`
echo x | while read -r a; do
  @t in_while
done
{
  @t in_group; :
} | @t behind_group
f() {

  x=`@t quoted_in_f; :`
}
f
(
  x=`@t quoted_in_subshell; :`
  @t after_it; :
)
";
    // Dash assigns the last line of a command on several lines.
    let truth = [("on_two_lines", "main.sh:6"), ("quoted_in_f", "main.sh:17 f < ...")];
    shell.expect_own_lines(script, &truth);
}

fn functions(shell: &Shell) {
    let script = "\
#!/bin/dash
f() {
  @t in_f\"$1\"
}

f 1
g() {
  f 2
  @t in_g
}
g
(f 3; :)
f 4 | @t behind_f
set_() { set -- x y; @t in_set; }
set_
@t after
eval 'h() { @t in_h; }'
h
. /dev/null
f 5
i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done
";
    // Dash prints nothing here, Busybox prints a line.
    let printed = shell.run(&["-c", "\n\neval 'echo $LINENO'"]).output();
    let continues_counting = printed.trim().parse::<u32>().is_ok_and(|line| line > 1);
    let in_h = choose(continues_counting, "main.sh:17 h < ...", "?:1 h < ...");
    let truth = [
        ("in_f1", "main.sh:3 f < ..."),
        ("in_f2", "main.sh:3 f < ..."),
        ("in_g", "main.sh:9 g < ..."),
        ("in_f3", "main.sh:3 f < ..."),
        ("in_f4", "main.sh:3 f < ..."),
        ("behind_f", "main.sh:13"),
        // `set` replaced the parameters, and with them the name of the function.
        ("in_set", "main.sh:14 < ..."),
        ("after", "main.sh:16"),
        // The function came from a string. Busybox continues to count lines in strings, which gives
        // the right line.
        ("in_h", in_h),
        // The function might have come from the file that was read since. The script's text shows
        // that it did not.
        ("in_f5", "main.sh:3 f < ..."),
    ];
    shell.expect(script, &[], &truth);
}

fn other_texts(shell: &Shell) {
    let script = "\
. \"${0%/*}/library.sh\"
of_library
eval '@t evaluated'
eval 'of_library 2'
f() {
  eval '@t evaluated_in_f'
}
f
trap '@t trapped' USR1
kill -USR1 $$
@t after
i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done
";
    let library = "\
of_library() { @t of_library\"$1\"; }

@t sourced
eval '@t evaluated_there'
x=$(@t substituted_there; :)
of_library _there
echo | @t behind_echo
";
    let truth = [
        ("sourced", "library.sh:3 < ..."),
        ("evaluated_there", ""),
        ("substituted_there", "library.sh:5 < ..."),
        ("behind_echo", "library.sh:7 < ..."),
        ("of_library_there", "library.sh:1 of_library < ..."),
        ("of_library", "library.sh:1 of_library < ..."),
        ("evaluated", "main.sh:?"),
        ("of_library2", "library.sh:? of_library < ..."),
        ("evaluated_in_f", "main.sh:? f < ..."),
        ("trapped", "main.sh:?"),
        ("after", "main.sh:11"),
    ];
    let chains = shell.expect(script, &[("library.sh", library)], &truth);
    // The fork for echo, too, is a part of the file.
    let files = chains.iter().filter_map(|(_, chain)| Some(chain.split_once(':')?.0));
    let files: BTreeSet<&str> = files.filter(|file| *file != "?").collect();
    assert_eq!(files, BTreeSet::from(["library.sh", "main.sh"]), "{chains:#?}");
}

fn without_file(shell: &Shell) {
    let tiny = word("tiny");
    // Busybox may count these lines from 0.
    let [one, three, two] = match shell.label().as_str() {
        "(ash)" => ["", "", "?:? f < ..."],
        _ => ["?:1", "?:3", "?:3 f < ..."],
    };
    for (script, label, expected) in [
        ("@t one; :", "one", one),
        ("\n\n@t three\n:", "three", three),
        ("\nf() {\n@t two\n}\n f", "two", two),
        ("echo '\n@t piped' | dash", "piped", "?:2"),
    ] {
        let record = Record::new();
        shell.record(&record, &["-c", &script.replace("@t", &tiny)]).expect_code(0);
        assert_eq!(chain_of(&labelled_chains(&record.file()), label), expected);
    }
}

#[apply(live_test)]
#[needs(Cc)]
fn dash_lines_are_known_without_a_writable_cache() {
    let record = Record::new();
    let script = format!("{} one; :", word("tiny"));
    let mut command = record.command(["dash", "-c", &script]);
    crate::support::run::run(command.env("XDG_CACHE_HOME", "/proc/no/such/directory")).expect_code(0);
    assert_eq!(chain_of(&labelled_chains(&record.file()), "one"), "?:1");
}
