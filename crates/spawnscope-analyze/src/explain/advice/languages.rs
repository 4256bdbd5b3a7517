//! Fixes in the language of the launching program: how to keep an answer, to launch without a shell, to run several launches at a time, and to
//! wait for a child. `functions` has what replaces single programs.

use super::functions::functions;
use crate::model::tree::Forest;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::Dialect;
use crate::patterns::words::Words;

/// Programs whose work on text or numbers a shell can do itself.
const SHELL_WORK: Words =
    Words("awk basename cat cut date dirname echo expr gawk grep head mawk printf sed seq tail tr wc");

/// What a language offers.
pub(super) struct Language {
    /// How to keep the answer of a program.
    pub(super) keep: &'static str,
    /// How to launch a program without a shell.
    pub(super) without_shell: &'static str,
    /// How to do without the shell's redirections, `cd` and variable assignments. May be empty.
    pub(super) instead_of_syntax: &'static str,
    /// How to run several commands at a time. `{n}` stands for their number.
    pub(super) parallel: &'static str,
    /// How to wait for a child instead of polling.
    pub(super) wait: &'static [&'static str],
}

/// Returns what a language offers.
pub(super) fn language(runtime: Runtime) -> &'static Language {
    match runtime {
        Runtime::Shell => &SHELL,
        Runtime::Make => &MAKE,
        Runtime::Python => &PYTHON,
        Runtime::Perl => &PERL,
        Runtime::Ruby => &RUBY,
        Runtime::Node => &NODE,
        Runtime::Php => &PHP,
        Runtime::Raku => &RAKU,
        Runtime::Fish => &FISH,
        Runtime::Lua => &LUA,
        Runtime::Tcl => &TCL,
        Runtime::Awk => &AWK,
        Runtime::CMake => &CMAKE,
        Runtime::R => &R,
        Runtime::Emacs => &EMACS,
        Runtime::Java => &JAVA,
        Runtime::Go => &GO,
        Runtime::Rust => &RUST,
        Runtime::Native => &NATIVE,
    }
}

const NATIVE_WAIT: &[&str] = &[
    "waitpid(pid, &status, 0) instead of a loop of waitpid(pid, &status, WNOHANG) and a sleep",
    "with a time limit, or together with other events: poll() on pidfd_open(pid, 0) (Linux 5.3), or SIGCHLD through signalfd",
];

const SHELL: Language = Language {
    keep: "answer=$(PROGRAM ARGUMENTS)   once, before the loop; then \"$answer\"; export it if scripts that this one launches need it, too",
    without_shell: "the command itself instead of sh -c '...' and eval",
    instead_of_syntax: "",
    parallel: "",
    wait: &["`wait PID`, or `wait -n` for the first that ends, instead of a loop of `kill -0` or `jobs` and `sleep`"],
};
const MAKE: Language = Language {
    keep: "ANSWER := $(shell PROGRAM ARGUMENTS)   with := it is evaluated once, with = at each use; export it for sub-makes",
    without_shell: "a recipe line without quotes, redirections or ; needs no shell: make then executes it directly",
    instead_of_syntax: "",
    parallel: "make -j{n}",
    wait: NATIVE_WAIT,
};
const PYTHON: Language = Language {
    keep: "@functools.cache on the function that launches, or a module-level variable",
    without_shell: "subprocess.run([\"prog\", \"arg\"]) without shell=True; os.system() and os.popen() always use a shell",
    instead_of_syntax: "stderr=subprocess.DEVNULL for 2>/dev/null; cwd=\"x\" for cd x &&; env={**os.environ, \"VAR\": \"x\"} for VAR=x",
    parallel: "concurrent.futures.ThreadPoolExecutor({n}).map(...) around subprocess.run",
    wait: &[
        "process.wait() instead of a loop of process.poll() and time.sleep()",
        "with a time limit: before Python 3.15, wait(timeout=...) and run(timeout=...) without pipes poll at intervals of up to 50 ms; \
         select.poll() on os.pidfd_open(process.pid) returns as soon as the process ends (Python 3.9)",
        "for many children: asyncio.create_subprocess_exec",
    ],
};
const PERL: Language = Language {
    keep: "use feature 'state'; state $answer = `PROGRAM ARGUMENTS`;",
    without_shell: "system(\"prog\", \"arg\") and open(my $out, \"-|\", \"prog\", \"arg\") with a list instead of one string or backticks",
    instead_of_syntax: "local $ENV{VAR} = \"x\" for VAR=x; chdir for cd x &&; IPC::Open3 or IPC::Run for 2>/dev/null",
    parallel: "Parallel::ForkManager->new({n})",
    wait: &["waitpid($pid, 0) instead of a loop of waitpid($pid, WNOHANG) and sleep"],
};
const RUBY: Language = Language {
    keep: "@answer ||= `PROGRAM ARGUMENTS`",
    without_shell: "system(\"prog\", \"arg\") and IO.popen([\"prog\", \"arg\"]) instead of one string or backticks",
    instead_of_syntax: "system({\"VAR\" => \"x\"}, \"prog\", chdir: \"x\", err: File::NULL)",
    parallel: "{n} threads that take commands from a Queue",
    wait: &["Process.wait(pid) instead of a loop with Process::WNOHANG and sleep"],
};
const NODE: Language = Language {
    keep: "let answer; const ask = () => answer ??= execFileSync('PROGRAM', ['ARGUMENTS'])",
    without_shell: "execFileSync(\"prog\", [\"arg\"]) and execFile instead of execSync and exec; spawn without shell: true",
    instead_of_syntax: "{cwd: \"x\", env: {...process.env, VAR: \"x\"}, stdio: [\"pipe\", \"pipe\", \"ignore\"]}",
    parallel: "execFile with promises, and Promise.all over {n} at a time",
    wait: &["child.on(\"exit\", ...) instead of setInterval and process.kill(pid, 0)"],
};
const PHP: Language = Language {
    keep: "static $answer = null; $answer ??= shell_exec('PROGRAM ARGUMENTS');",
    without_shell: "proc_open([\"prog\", \"arg\"], ...) with an array instead of exec, shell_exec, system or backticks",
    instead_of_syntax: "proc_open takes the descriptors, the directory and the environment as arguments",
    parallel: "{n} proc_open calls before the first proc_close",
    wait: &["proc_close($process), which waits, instead of a loop of proc_get_status() and usleep()"],
};
const RAKU: Language = Language {
    keep: "state $answer = run(<PROGRAM ARGUMENTS>, :out).out.slurp(:close);",
    without_shell: "run <prog arg> instead of shell \"prog arg\" and qx//",
    instead_of_syntax: "run(..., :err) for 2>; :cwd<x> for cd x &&; :env(|%*ENV, VAR => \"x\") for VAR=x",
    parallel: "race for @inputs, with degree => {n}",
    wait: &["await $proc.start, or whenever $proc.start { ... }, instead of a loop of sleep"],
};
const FISH: Language = Language {
    keep: "set answer (PROGRAM ARGUMENTS)   once, before the loop; then $answer; set -gx for programs that this one launches",
    without_shell: "the command itself instead of sh -c '...' and eval",
    instead_of_syntax: "",
    parallel: "& and `wait`, {n} at a time, or xargs -P{n}",
    wait: &["`wait $pid` instead of a loop of `kill -0` and `sleep`"],
};
const LUA: Language = Language {
    keep: "local answer = io.popen('PROGRAM ARGUMENTS'):read('a')   once, before the loop",
    without_shell: "os.execute and io.popen always use a shell: posix.spawn of luaposix, or vim.system and vim.uv.spawn in Neovim, do not",
    instead_of_syntax: "",
    parallel: "{n} io.popen calls before the first :close()",
    wait: &["handle:close() of io.popen, which waits, instead of a loop of os.execute('kill -0 ...')"],
};
const TCL: Language = Language {
    keep: "if {![info exists answer]} { set answer [exec PROGRAM ARGUMENTS] }",
    without_shell: "exec PROGRAM ARGUMENTS instead of exec sh -c; exec has |, < and 2>",
    instead_of_syntax: "exec PROGRAM 2>/dev/null; cd; set env(VAR) x",
    parallel: "{n} commands with open \"|PROGRAM ARGUMENTS\", and fileevent",
    wait: &["close of a channel from open \"|...\", which waits, or fileevent, instead of a loop of after"],
};
const AWK: Language = Language {
    keep: "BEGIN { \"PROGRAM ARGUMENTS\" | getline answer }   and -v answer=\"$(PROGRAM)\" does the same outside",
    without_shell: "system() and command | getline always use a shell: print all inputs, and pipe them to one command with print | command",
    instead_of_syntax: "",
    parallel: "print the inputs, and run `xargs -P{n}` on them",
    wait: NATIVE_WAIT,
};
const CMAKE: Language = Language {
    keep: "execute_process once, and set(ANSWER \"${output}\" CACHE INTERNAL \"\")   or with if(NOT DEFINED ANSWER) around it",
    without_shell: "execute_process(COMMAND prog arg) instead of COMMAND sh -c",
    instead_of_syntax: "WORKING_DIRECTORY, ERROR_QUIET, and COMMAND ${CMAKE_COMMAND} -E env VAR=x prog",
    parallel: "do the work at build time, in add_custom_command, so that the build runs {n} at a time",
    wait: NATIVE_WAIT,
};
const R: Language = Language {
    keep: "answer <- system2(\"PROGRAM\", \"ARGUMENTS\", stdout = TRUE)   once, before the loop",
    without_shell: "processx::run(\"prog\", \"arg\") instead of system() and system2(), which use a shell",
    instead_of_syntax: "processx::run(..., wd = \"x\", env = c(VAR = \"x\"))",
    parallel: "parallel::mclapply(inputs, f, mc.cores = {n})",
    wait: NATIVE_WAIT,
};
const EMACS: Language = Language {
    keep: "keep it in a variable (defvar), or in a buffer-local cache per directory",
    without_shell: "call-process and process-lines instead of shell-command and shell-command-to-string",
    instead_of_syntax: "let-bind default-directory and process-environment; (call-process PROG nil '(t nil) nil ARG) drops stderr",
    parallel: "make-process for {n} of them, with sentinels",
    wait: &["a process sentinel, or accept-process-output, instead of a loop of process-live-p and sleep-for"],
};
const JAVA: Language = Language {
    keep: "keep it in a static final field",
    without_shell: "new ProcessBuilder(\"prog\", \"arg\") instead of sh -c",
    instead_of_syntax: "ProcessBuilder.directory(), environment() and redirectError(DISCARD)",
    parallel: "Executors.newFixedThreadPool({n})",
    wait: &["process.waitFor() or process.onExit() instead of a loop of isAlive() and sleep"],
};
const GO: Language = Language {
    keep: "sync.OnceValue(func() string { ... exec.Command ... })",
    without_shell: "exec.Command(\"prog\", \"arg\") instead of exec.Command(\"sh\", \"-c\", ...)",
    instead_of_syntax: "Cmd.Dir, Cmd.Env and Cmd.Stderr = nil",
    parallel: "one goroutine per command, limited by errgroup.SetLimit({n})",
    wait: &["cmd.Wait(), or its result through a channel, instead of a loop of Signal(0) and time.Sleep"],
};
const RUST: Language = Language {
    keep: "static ANSWER: LazyLock<String> = LazyLock::new(|| ... Command::new ...)",
    without_shell: "Command::new(\"prog\").arg(\"arg\") instead of Command::new(\"sh\").arg(\"-c\")",
    instead_of_syntax: "Command::current_dir, env, and stderr(Stdio::null())",
    parallel: "spawn {n} of them, or rayon",
    wait: &["child.wait() instead of a loop of try_wait() and thread::sleep"],
};
const NATIVE: Language = Language {
    keep: "keep it in a variable of the program, or pass it on in the environment",
    without_shell: "posix_spawnp() with an array of arguments instead of system() and popen()",
    instead_of_syntax: "posix_spawn_file_actions_addopen() and _addchdir_np(), and the argument envp",
    parallel: "start {n} before waiting for the first",
    wait: NATIVE_WAIT,
};

const BASH_WORK: &str =
    "  use the shell itself: ${x##*/}, ${x/a/b}, $((...)), read, [[ =~ ]], printf '%(%F)T' for dates (bash 4.2)";
const KSH_WORK: &str = "  use the shell itself: ${x##*/}, ${x/a/b}, $((...)), read, [[ =~ ]]";
const POSIX_WORK: &str = "  use the shell itself: ${x##*/}, ${x%.*}, $((...)), read, case $x in PATTERN) ...;; esac";

/// Whether a shell can do the work of a program on text or numbers.
pub(super) fn is_shell_work(program: &[u8]) -> bool {
    SHELL_WORK.contains(program)
}

/// Returns how the code that made a launch does the work of a small program itself. `None` if it is not known to: no shell does what openssl
/// does. Without a program, it is the work of a command line.
pub(super) fn without_launching(forest: &Forest<'_>, launch: u32, program: Option<&[u8]>) -> Option<String> {
    let runtime = Runtime::of_parent(forest, launch);
    match (runtime, program) {
        (Runtime::Shell, Some(program)) if !SHELL_WORK.contains(program) => None,
        (Runtime::Shell, _) => Some(
            match Dialect::of_parent(forest, launch as usize) {
                Some(Dialect::Bash) => BASH_WORK,
                Some(Dialect::Zsh | Dialect::Ksh) => KSH_WORK,
                Some(Dialect::Posix) | None => POSIX_WORK,
            }
            .to_owned(),
        ),
        (_, Some(program)) => functions(runtime, program).map(|functions| format!("  {functions}")),
        (_, None) => None,
    }
}
