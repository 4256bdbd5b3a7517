//! The lines of zsh scripts that request launches: each way in which zsh forks, with the call chain
//! that the launches must have.

use crate::support::chains::{
    EVALUATIONS, FORKS, FUNCTIONS, IN_EVALUATIONS, IN_FORKS, IN_FUNCTIONS, LIBRARY, NOT_LAUNCHED, Shell, assert_chains,
    assert_recursion_is_truncated, labelled_chains, write_files,
};
use crate::support::live_test;
use crate::support::run::Record;
use crate::support::workloads::word;

live_test! {
    #[needs(Cc, Zsh)]
    fn zsh_functions_and_sourced_files_have_their_whole_chain = functions(&zsh());
    fn zsh_substitutions_subshells_and_pipelines_have_their_line = forks(&zsh());
    fn code_that_zsh_evaluates_has_the_line_of_its_eval = evaluations(&zsh());
    fn commands_of_zsh_traps_have_no_line_of_the_script = traps(&zsh());
    fn an_interactive_zsh_has_the_lines_of_the_files_that_it_reads = startup_file(&zsh());
    fn a_deep_recursion_of_zsh_is_truncated_and_marked = assert_recursion_is_truncated(&zsh());
}

/// All these checks; `suites.rs` makes them with other versions of zsh.
pub const CHECKS: [fn(&Shell); 6] = [functions, forks, evaluations, traps, startup_file, assert_recursion_is_truncated];

fn zsh() -> Shell {
    Shell::installed("zsh")
}

fn functions(shell: &Shell) {
    let script = "\
fpath=(\"${0%/*}\")
autoload -U autoloaded
autoloaded 1
autoloaded 2
() {
  @t anonymous
}
h() { . \"${0:h}/library.sh\"; }
unsetopt function_argzero
h
";
    let truth = [
        ("autoloaded1", "autoloaded:2 autoloaded < main.sh:17"),
        ("autoloaded2", "autoloaded:2 autoloaded < main.sh:18"),
        ("anonymous", "main.sh:20 (anon) < main.sh:19"),
        ("sourced2", "library.sh:4 < main.sh:22 h < main.sh:24"),
        ("of_library12", "library.sh:2 of_library < library.sh:5 < main.sh:22 h < main.sh:24"),
    ];
    let files = [LIBRARY, ("autoloaded", ":\n@t autoloaded\"$1\"\n")];
    shell.expect(&format!("{FUNCTIONS}{script}"), &files, &[&IN_FUNCTIONS[..], &truth].concat());
}

fn forks(shell: &Shell) {
    let script = "\
@t argument <(@t process_substitution; :) last
@t copied >/dev/null > \"${0:h}/copy\"
echo x | while read -r a; do
@t in_while
done
{
@t in_group; :
} | @t behind_group
x=$(
@t of_lines
:
)
@t continued \\
end
g() {
x=$(f 5)
(
  f 6
  :
) &
wait
}
g
";
    let truth = [
        ("argument", NOT_LAUNCHED),
        ("last", "main.sh:24"),
        ("continued", NOT_LAUNCHED),
        ("end", "main.sh:36"),
        ("in_f5", "main.sh:2 f < main.sh:39 g < main.sh:46"),
        ("in_f6", "main.sh:2 f < main.sh:41 g < main.sh:46"),
    ];
    shell.expect_own_lines(&format!("{FORKS}{script}"), &[&IN_FORKS[..], &truth].concat());
}

fn evaluations(shell: &Shell) {
    shell.expect(EVALUATIONS, &[], &IN_EVALUATIONS);
}

/// zsh runs a trap's text where it interrupts the script, and counts its lines. A trap that is a
/// function has its own.
fn traps(shell: &Shell) {
    let script = "\
trap '@t in_trap' USR1
kill -USR1 $$
TRAPUSR2() {
  @t in_function
}
kill -USR2 $$
:
trap '
@t at_exit' EXIT
:
";
    let truth = [("in_trap", "main.sh:?"), ("in_function", "main.sh:4 TRAPUSR2 < main.sh:6"), ("at_exit", "main.sh:?")];
    shell.expect(script, &[], &truth);
}

fn startup_file(shell: &Shell) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let startup = "\
@t top
f() {
  @t in_f\"$1\"
}
f 1
eval \"$(@t substituted; echo; echo '@t evaluated')\"
. \"$ZDOTDIR/library.sh\"
precmd() {
  @t at_prompt
}
";
    write_files(directory.path(), &[(".zshrc", startup), ("library.sh", ":\n@t in_library\nf 2\n")]);
    let record = Record::new();
    let (directory, tiny) = (directory.path().display(), word("tiny"));
    let starts = format!("ZDOTDIR='{directory}' \"$0\" --no-globalrcs -ic 'f 3; precmd; {tiny} given'; :");
    shell.record(&record, &["-fc", &starts]).expect_code(0);
    let chains = labelled_chains(&record.file());
    let truth = [
        ("top", ".zshrc:1"),
        ("in_f1", ".zshrc:3 f < .zshrc:5"),
        ("substituted", ".zshrc:6"),
        ("evaluated", ".zshrc:6"),
        ("in_library", "library.sh:2 < .zshrc:7"),
        ("in_f2", ".zshrc:3 f < library.sh:3 < .zshrc:7"),
        ("in_f3", ".zshrc:3 f"),
        ("at_prompt", ".zshrc:9 precmd"),
        ("given", ""),
    ];
    assert_chains(&chains, &truth);
}
