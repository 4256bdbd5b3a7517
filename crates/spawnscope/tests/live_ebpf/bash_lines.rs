//! The lines of bash scripts that request launches: each way in which bash forks, with the call
//! chain that the launches must have.

use crate::support::chains::{
    EVALUATIONS, FORKS, FUNCTIONS, IN_EVALUATIONS, IN_FORKS, IN_FUNCTIONS, LIBRARY, NOT_LAUNCHED, Shell, assert_chains,
    assert_recursion_is_truncated, labelled_chains, write_files,
};
use crate::support::prelude::*;

live_test! {
    #[needs(Ebpf)]
    fn bash_functions_and_sourced_files_have_their_whole_chain = functions(&bash());
    fn bash_substitutions_subshells_and_pipelines_have_their_line = forks(&bash());
    fn bash_compound_commands_in_subshells_have_their_own_line = compounds(&bash());
    fn code_that_bash_evaluates_has_the_line_of_its_eval = evaluations(&bash());
    fn commands_of_bash_traps_have_no_line_of_the_script = traps(&bash());
    fn bash_code_without_a_file_has_lines_without_a_file = without_file(&bash());
    fn a_shell_with_a_prompt_has_the_lines_of_the_files_that_it_reads = startup_file(&bash());
    fn a_deep_recursion_is_truncated_and_marked = assert_recursion_is_truncated(&bash());
}

/// All these checks; `suites.rs` makes them with other versions of bash.
pub const CHECKS: [fn(&Shell); 8] =
    [functions, forks, compounds, evaluations, traps, without_file, startup_file, assert_recursion_is_truncated];

fn bash() -> Shell {
    Shell::installed("bash")
}

fn functions(shell: &Shell) {
    shell.expect(FUNCTIONS, &[LIBRARY], &IN_FUNCTIONS);
}

fn forks(shell: &Shell) {
    let script = format!("{FORKS}@t argument <(@t process_substitution; :) last; wait $!\n");
    let truth = [&IN_FORKS[..], &[("argument", NOT_LAUNCHED), ("last", "main.sh:24")]].concat();
    shell.expect_own_lines(&script, &truth);
}

/// When bash forks for a compound command, bash itself does not know its line.
fn compounds(shell: &Shell) {
    let script = "\
f() {

  echo x | while read -r a; do
    @t in_while
  done
  {
    @t in_group; :
  } | @t behind_group
  for i in 1; do
    @t in_for
  done &
  wait
  while read -r a; do
    @t in_body
  done < <(@t in_redirection; echo b)
  x=$(while @t in_test; do
    break; done; :)
}
f
";
    let truth = [
        ("in_while", "main.sh:4 f < main.sh:19"),
        ("in_group", "main.sh:7 f < main.sh:19"),
        ("behind_group", "main.sh:8 f < main.sh:19"),
        ("in_for", "main.sh:10 f < main.sh:19"),
        ("in_body", "main.sh:14 f < main.sh:19"),
        // Bash does not store where the process substitution is.
        ("in_redirection", "main.sh:? f < main.sh:19"),
    ];
    shell.expect(script, &[], &truth);

    let directory = tempfile::tempdir().expect("a temporary directory");
    write_files(directory.path(), &[("main.sh", "\n:\n:; echo x | while read -r a; do\n  :\ndone\n\n:")]);
    let record = Record::new();
    shell.record(&record, &[directory.path().join("main.sh")]).expect_code(0);
    // A shell with its own root directory is launched by another program; only launches by main.sh
    // count.
    let chains = labelled_chains(&record.file()).into_iter().map(|(_, chain)| chain);
    let chains: Vec<_> = chains.filter(|chain| chain.contains("main.sh")).collect();
    assert_eq!(chains, ["main.sh:3", "main.sh:3"], "both sides of the pipeline");
}

fn evaluations(shell: &Shell) {
    let script = format!("{EVALUATIONS}mapfile -C 'f 4;:' -c 1 < <(echo x)\n");
    shell.expect(&script, &[], &[&IN_EVALUATIONS[..], &[("in_f4", "main.sh:2 f < main.sh:17")]].concat());
}

fn traps(shell: &Shell) {
    let script = "\
f() {
  @t in_f\"$1\"
}
trap 'f 1; @t in_trap' USR1
kill -USR1 $$
trap 'f 2; @t at_error' ERR
false
trap - ERR
trap '
f 3
@t at_exit' EXIT
:
";
    let truth = [
        ("in_f1", "main.sh:2 f < main.sh:?"),
        ("in_trap", "main.sh:?"),
        ("in_f2", "main.sh:2 f < main.sh:7"),
        ("at_error", "main.sh:7"),
        ("in_f3", "main.sh:2 f < main.sh:?"),
        ("at_exit", "main.sh:?"),
    ];
    shell.expect(script, &[], &truth);
}

fn without_file(shell: &Shell) {
    let script = "\
export -f f
f() { @t in_f\"$1\"; }
export -f f
\"$BASH\" -c '@t given
main() {
  @t in_main; :
}
main'
echo '@t piped
g() { @t in_g; }
g' | \"$BASH\"
\"$BASH\" -c 'f 1
:'
";
    let is_known = counts_from_one(shell);
    let truth = [
        ("given", if is_known { "?:1" } else { "?:?" }),
        ("in_main", if is_known { "?:3 main < ?:5" } else { "?:? main < ?:?" }),
        ("piped", "?:1"),
        ("in_g", "?:2 g < ?:3"),
    ];
    shell.expect(script, &[], &truth);
}

/// Whether bash counts the lines of its `-c` argument from 1. Up to 5.0, bash counts them from 0,
/// and a function that is called there looks like top-level code.
fn counts_from_one(shell: &Shell) -> bool {
    shell.run(&["-c", "echo $LINENO"]).output().trim() == "1"
}

/// Functions that evaluated text defines have no lines, because the text is in no file.
fn startup_file(shell: &Shell) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let startup = "\
@t top

f() { @t in_f\"$1\"; }
f 1
eval \"$(@t substituted; echo; echo '@t evaluated; f 2')\"
eval 'g() {
  @t in_g
}'
x=$(g; :)
. \"${BASH_SOURCE%/*}/library.sh\"
@t pipe1 | @t pipe2
";
    let library = "\
:
@t in_library
f 3
";
    let late = "\
eval $'\\n\\n@t late_evaluated'$1

@t late$1
f 5$1
";
    write_files(directory.path(), &[("startup", startup), ("library.sh", library), ("late.sh", late)]);
    let record = Record::new();
    let file = directory.path().join("startup");
    let late = directory.path().join("late.sh").display().to_string();
    let given = format!("{} given; f 4; . {late} 1\n\nh() {{\n . {late} 2\n}}; h", word("tiny"));
    let arguments = ["--rcfile".as_ref(), file.as_os_str(), "-ic".as_ref(), given.as_ref()];
    shell.record(&record, &arguments).expect_code(0);
    let chains = labelled_chains(&record.file());
    let is_known = counts_from_one(shell);
    let truth = [
        ("top", "startup:1"),
        ("in_f1", "startup:? f < startup:4"),
        ("substituted", "startup:5"),
        ("evaluated", "startup:5"),
        ("in_f2", "startup:? f < startup:5"),
        ("in_g", "startup:? g < startup:9"),
        ("in_library", "library.sh:2 < startup:10"),
        ("in_f3", "startup:? f < library.sh:3 < startup:10"),
        ("pipe1", "startup:11"),
        ("pipe2", "startup:11"),
        ("given", ""),
        ("in_f4", "startup:? f"),
        ("late1", "late.sh:3"),
        ("late_evaluated1", if is_known { "late.sh:1" } else { "late.sh:?" }),
        ("in_f51", "startup:? f < late.sh:4"),
        ("late2", "late.sh:3 < ?:? h"),
        ("late_evaluated2", "late.sh:1 < ?:? h"),
        ("in_f52", "startup:? f < late.sh:4 < ?:? h"),
    ];
    assert_chains(&chains, &truth);
}
