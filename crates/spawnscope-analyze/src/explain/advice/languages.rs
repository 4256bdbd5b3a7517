//! Fixes in the language of the launching program: how to keep an answer, avoid launching a small
//! program, or launch without a shell.

use crate::model::tree::Forest;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::Dialect;

/// Programs whose work on text or numbers a shell can do itself.
const SHELL_WORK: [&[u8]; 18] = [
    b"awk",
    b"basename",
    b"cat",
    b"cut",
    b"date",
    b"dirname",
    b"echo",
    b"expr",
    b"gawk",
    b"grep",
    b"head",
    b"mawk",
    b"printf",
    b"sed",
    b"seq",
    b"tail",
    b"tr",
    b"wc",
];

/// Returns the lines that show how to keep the answer of a program.
pub(super) fn how_to_keep_an_answer(runtime: Runtime) -> &'static [&'static str] {
    match runtime {
        Runtime::Shell => &[
            "  answer=$(PROGRAM ARGUMENTS)     once, before the loop; then \"$answer\"",
            "  export it if scripts that this one launches need it, too",
        ],
        Runtime::Python => &["  @functools.cache on the function that launches, or a module-level variable"],
        Runtime::Perl => &["  use feature 'state'; state $answer = `PROGRAM ARGUMENTS`;"],
        Runtime::Raku => &["  state $answer = run(<PROGRAM ARGUMENTS>, :out).out.slurp(:close);"],
        Runtime::Ruby => &["  @answer ||= `PROGRAM ARGUMENTS`"],
        Runtime::Node => &["  let answer; const ask = () => answer ??= execFileSync('PROGRAM', ['ARGUMENTS'])"],
        Runtime::Php => &["  static $answer = null; $answer ??= shell_exec('PROGRAM ARGUMENTS');"],
        Runtime::Make => &[
            "  ANSWER := $(shell PROGRAM ARGUMENTS)     with := it is evaluated once, with = at each use",
            "  export it, so that sub-makes do not evaluate it again",
        ],
        Runtime::Emacs => &["  keep it in a variable (defvar), or in a buffer-local cache per directory"],
        Runtime::Go => &["  sync.OnceValue(func() string { ... exec.Command ... })"],
        Runtime::Rust => &["  static ANSWER: LazyLock<String> = LazyLock::new(|| ... Command::new ...)"],
        Runtime::Java => &["  keep it in a static final field"],
        Runtime::Native => &["  keep it in a variable of the program, or pass it on in the environment"],
    }
}

const BASH_WORK: &[&str] =
    &["  use the shell itself: ${x##*/}, ${x/a/b}, $((...)), read, [[ =~ ]], printf '%(%F)T' for dates (bash 4.2)"];
const KSH_WORK: &[&str] = &["  use the shell itself: ${x##*/}, ${x/a/b}, $((...)), read, [[ =~ ]]"];
const POSIX_WORK: &[&str] =
    &["  use the shell itself: ${x##*/}, ${x%.*}, $((...)), read, case $x in PATTERN) ...;; esac"];

/// Returns the lines that show how the code that made a launch does the work of a small program itself. Empty if it cannot: no shell
/// does what openssl does.
pub(super) fn without_launching(forest: &Forest<'_>, launch: u32, program: Option<&[u8]>) -> &'static [&'static str] {
    let runtime = Runtime::of_parent(forest, launch);
    match runtime {
        Runtime::Shell if program.is_some_and(|program| !SHELL_WORK.contains(&program)) => &[],
        Runtime::Shell => match Dialect::of_parent(forest, launch as usize) {
            Some(Dialect::Bash) => BASH_WORK,
            Some(Dialect::Zsh | Dialect::Ksh) => KSH_WORK,
            Some(Dialect::Posix) | None => POSIX_WORK,
        },
        Runtime::Python => {
            &["  use a module: pathlib, shutil, re, datetime, hashlib, json, or the program's own library"]
        }
        Runtime::Perl => &["  use a module: File::Basename, File::Copy, POSIX qw(strftime), Digest::MD5"],
        Runtime::Node => &["  use a module: fs, path, crypto, os"],
        Runtime::Ruby => &["  use a library: File, FileUtils, Time, Digest"],
        Runtime::Go => &["  use a package: os, path/filepath, time, crypto"],
        Runtime::Rust => &["  use a module of std (fs, path, time) or a crate"],
        _ => &["  use a function of the language, or a library"],
    }
}

/// Returns the lines that show how to launch a program without a shell.
pub(super) fn without_shell(runtime: Runtime) -> &'static [&'static str] {
    match runtime {
        Runtime::Python => {
            &["  subprocess.run([\"prog\", \"arg\"]) without shell=True; os.system() and os.popen() always use a shell"]
        }
        Runtime::Perl => &[
            "  system(\"prog\", \"arg\") and open(my $out, \"-|\", \"prog\", \"arg\") with a list instead of one string or backticks",
        ],
        Runtime::Raku => &["  run <prog arg> instead of shell \"prog arg\" and qx//"],
        Runtime::Ruby => {
            &["  system(\"prog\", \"arg\") and IO.popen([\"prog\", \"arg\"]) instead of one string or backticks"]
        }
        Runtime::Node => &[
            "  execFileSync(\"prog\", [\"arg\"]) and execFile instead of execSync and exec; spawn without shell: true",
        ],
        Runtime::Php => {
            &["  proc_open([\"prog\", \"arg\"], ...) with an array instead of exec, shell_exec, system or backticks"]
        }
        Runtime::Java => &["  new ProcessBuilder(\"prog\", \"arg\") instead of sh -c"],
        Runtime::Emacs => &["  call-process and process-lines instead of shell-command and shell-command-to-string"],
        Runtime::Make => {
            &["  a recipe line without quotes, redirections or ; needs no shell: make then executes it directly"]
        }
        Runtime::Go => &["  exec.Command(\"prog\", \"arg\") instead of exec.Command(\"sh\", \"-c\", ...)"],
        Runtime::Rust => &["  Command::new(\"prog\").arg(\"arg\") instead of Command::new(\"sh\").arg(\"-c\")"],
        Runtime::Shell => &["  the command itself instead of sh -c '...' and eval"],
        Runtime::Native => &["  posix_spawnp() with an array of arguments instead of system() and popen()"],
    }
}

/// Returns the lines that show how to do without the shell's redirections, `cd` and variable
/// assignments.
pub(super) fn instead_of_shell_syntax(runtime: Runtime) -> &'static [&'static str] {
    match runtime {
        Runtime::Python => &[
            "  stderr=subprocess.DEVNULL for 2>/dev/null; cwd=\"x\" for cd x &&; env={**os.environ, \"VAR\": \"x\"} for VAR=x",
        ],
        Runtime::Perl => {
            &["  local $ENV{VAR} = \"x\" for VAR=x; chdir for cd x &&; IPC::Open3 or IPC::Run for 2>/dev/null"]
        }
        Runtime::Raku => &["  run(..., :err) for 2>; :cwd<x> for cd x &&; :env(|%*ENV, VAR => \"x\") for VAR=x"],
        Runtime::Ruby => &["  system({\"VAR\" => \"x\"}, \"prog\", chdir: \"x\", err: File::NULL)"],
        Runtime::Node => {
            &["  {cwd: \"x\", env: {...process.env, VAR: \"x\"}, stdio: [\"pipe\", \"pipe\", \"ignore\"]}"]
        }
        Runtime::Php => &["  proc_open takes the descriptors, the directory and the environment as arguments"],
        Runtime::Java => &["  ProcessBuilder.directory(), environment() and redirectError(DISCARD)"],
        Runtime::Emacs => &[
            "  let-bind default-directory and process-environment; (call-process PROG nil '(t nil) nil ARG) drops stderr",
        ],
        Runtime::Go => &["  Cmd.Dir, Cmd.Env and Cmd.Stderr = nil"],
        Runtime::Rust => &["  Command::current_dir, env, and stderr(Stdio::null())"],
        Runtime::Make | Runtime::Shell => &[],
        Runtime::Native => &["  posix_spawn_file_actions_addopen() and _addchdir_np(), and the argument envp"],
    }
}
