//! One test for each property in which a program that is run directly could differ from one that a
//! shell runs.

use std::process::Command;

use crate::build::{Directory, FUNCTIONS, Setting, library};

const SHELLS: [&str; 2] = ["/bin/dash", "/bin/bash"];

/// Checks that the shell is skipped for each of the texts, with both shells, and that the results
/// are the same.
fn assert_skipped(texts: &[&[u8]]) {
    assert_skipped_with(texts, |setting| setting);
}

fn assert_skipped_with(texts: &[&[u8]], change: impl Fn(Setting) -> Setting) {
    let directory = Directory::new();
    for shell in SHELLS {
        let skipped = directory.compare(&change(Setting::new("execve", shell)), texts);
        assert_eq!(skipped, texts.len() as u64, "{shell}");
    }
}

/// Checks that the shell runs each of the texts, with both shells, and that the results are the
/// same.
fn assert_kept(texts: &[&[u8]]) {
    assert_kept_with(texts, &SHELLS, |setting| setting);
}

fn assert_kept_with(texts: &[&[u8]], shells: &[&'static str], change: impl Fn(Setting) -> Setting) {
    let directory = Directory::new();
    for shell in shells {
        let skipped = directory.compare(&change(Setting::new("execve", shell)), texts);
        assert_eq!(skipped, 0, "{shell}");
    }
}

#[test]
fn quoted_words_skip_the_shell() {
    assert_skipped(&[
        b"probe a b",
        b"probe 'a b' \"c d\"",
        b"probe a'b'\"c\"d ''",
        b"probe \"\" ''",
        b"'probe' x",
        b"probe 'a\nb' \"c\nd\" '\t'",
        b" \tprobe  a \t ",
        b"probe '\"' \"'\" '$HOME `a` * ~ \\n #'",
    ]);
}

#[test]
fn escaped_characters_skip_the_shell() {
    assert_skipped(&[
        b"probe a\\ b \\' \\\" \\\\ \\$HOME \\* \\~ \\# \\; \\a",
        b"probe \"a\\\"b\" \"\\\\\" \"\\$HOME\" \"\\`\" \"\\a\\n\\.\" \"a b\"",
        b"pro\\be x",
    ]);
}

#[test]
fn arguments_may_look_like_assignments() {
    assert_skipped(&[b"probe a=b", b"probe --x=y =z a=:b"]);
}

/// One text of each kind. The tests of vspawn-shell have all of them.
#[test]
fn texts_that_only_a_shell_understands_keep_it() {
    assert_kept(&[
        b"probe $HOME", b"probe \"$HOME\"", b"probe `echo a`", b"probe *", b"probe ~", b"probe {a,b}", b"probe a # b",
        b"probe; probe", b"probe | cat", b"(probe)", b"probe\nprobe", b"probe a\\\nb", b"probe \"a", b"! probe",
        b"a=b probe", b"a=b", b"echo a", b"'echo' a", b"e\\cho a", b"if probe", b"{ probe", b"%1", b"-x probe", b"--",
        b"", b" ", b"probe \xff", b"probe '\x7f'",
    ]);
}

#[test]
fn exit_statuses_are_passed_on() {
    for status in ["0", "1", "126", "127", "128", "200", "255"] {
        assert_skipped_with(&[b"probe"], |setting| setting.with("PROBE_STATUS", status));
    }
}

#[test]
fn callers_of_popen_and_system_see_a_commands_signal_as_with_the_shell() {
    let directory = Directory::new();
    for function in ["system", "popen", "popen-w", "popen-fclose"] {
        for signal in ["6", "9", "11", "13", "14", "15", "34"] {
            let setting = Setting::new(function, "/bin/sh").with("PROBE_SIGNAL", signal);
            assert_eq!(directory.compare(&setting, &[b"probe"]), expected_skips(function), "{function} {signal}");
        }
    }
}

/// A Ctrl-C kills the shell, too.
#[test]
fn callers_of_popen_and_system_see_a_groups_signal_as_with_the_shell() {
    let directory = Directory::new();
    for function in ["system", "popen", "popen-w", "popen-fclose"] {
        for signal in ["1", "2", "3"] {
            let setting = Setting::new(function, "/bin/sh").with("PROBE_SIGNAL", signal).with("LAUNCH_GROUP", signal);
            assert_eq!(directory.compare(&setting, &[b"probe"]), expected_skips(function), "{function} {signal}");
        }
    }
}

/// Returns how many shells a function skips. `popen` is tested while another stream is open, whose
/// `cat` is a text of its own.
fn expected_skips(function: &str) -> u64 {
    if matches!(function, "popen" | "popen-fclose") { 2 } else { 1 }
}

#[test]
fn after_an_exec_a_signal_status_is_the_commands_own_unless_strict() {
    let directory = Directory::new();
    let setting = Setting::new("execve", "/bin/dash").with("PROBE_SIGNAL", "9");
    for (is_loaded, status) in [(false, "status 8900"), (true, "status 9")] {
        let result = directory.run(&setting, &[b"probe"], is_loaded);
        assert_eq!(result.output.lines().rev().nth(1), Some(status), "{result:?}");
    }
    let strict = setting.with("SPAWNSCOPE_ACCEL_STRICT", "1");
    assert_eq!(directory.compare(&strict, &[b"probe"]), 0);
    // bash executes its command without a fork.
    let bash = Setting::new("execve", "/bin/bash").with("PROBE_SIGNAL", "9").with("SPAWNSCOPE_ACCEL_STRICT", "1");
    assert_eq!(directory.compare(&bash, &[b"probe"]), 1);
}

#[test]
fn every_hooked_function_skips_the_shell() {
    let directory = Directory::new();
    for shell in SHELLS {
        for function in FUNCTIONS {
            let setting = Setting::new(function, shell).with("SHLVL", "1");
            assert_eq!(directory.compare(&setting, &[b"probe 'a b'"]), 1, "{function} {shell}");
            directory.compare(&setting, &[b"probe $HOME", b"missing", b"script", b"echo a"]);
        }
        for function in ["execl-more", "spawn-chdir"] {
            assert_eq!(directory.compare(&Setting::new(function, shell), &[b"probe \"$0$1$7\""]), 0, "{function}");
        }
        // The library does not know in which directory the child will be.
        assert_eq!(directory.compare(&Setting::new("spawn-chdir", shell), &[b"probe"]), 0);
    }
    for function in ["system", "popen", "popen-w", "popen-fclose"] {
        let setting = Setting::new(function, "/bin/sh");
        assert_eq!(directory.compare(&setting, &[b"probe 'a b'"]), expected_skips(function), "{function}");
        directory.compare(&setting, &[b"probe $HOME", b"missing", b"script", b"echo a", b"exit 3", b"(", b""]);
    }
}

#[test]
fn a_failed_search_has_the_same_errors_as_in_the_shell() {
    let directory = Directory::new();
    let texts: [&[u8]; 12] = [
        b"missing", b"./missing", b"plain", b"./plain", b"directory", b"./directory", b"script a", b"./script",
        b"lost", b"./lost", b"./probe/x", b"/",
    ];
    for shell in SHELLS {
        for text in texts {
            directory.compare(&Setting::new("execve", shell), &[text]);
            directory.compare(&Setting::new("posix_spawn", shell), &[text]);
        }
    }
}

#[test]
fn paths_that_shells_treat_differently_keep_the_shell() {
    for path in ["", ".", ":", "directory:.", "~", "%builtin:/usr/bin", "/nonexistent::."] {
        assert_kept_with(&[b"probe a"], &SHELLS, |setting| setting.with("PATH", path));
    }
    assert_skipped(&[b"./probe a", b"./directory/../probe"]);
}

#[test]
fn the_program_gets_the_environment_that_the_shell_would_pass_on() {
    for variable in [
        "PWD=/nonexistent", "PWD=relative", "PWD=", "OLDPWD=/usr", "_=/foo", "SHLVL=0", "SHLVL=7", "SHLVL=12",
        "LANG=xx_YY", "LC_ALL=C", "LC_ALL=C.UTF-8", "MAIL=x", "MAILPATH=x", "HOME=/", "TERM=dumb", "COLUMNS=7",
        "LINES=7", "HOSTNAME=h", "SHELL=/x", "HISTFILE=/x", "TMOUT=1", "EDITOR=a=b", "EMACS=t", "CDPATH=/", "TZ=x",
        "IFS= \t\n",
    ] {
        assert_skipped_with(&[b"probe a"], |setting| setting.with_variable(variable));
    }
}

#[test]
fn invalid_names_of_variables_are_dropped_like_dash_and_keep_bash() {
    let directory = Directory::new();
    for name in ["A.B", "1x", "a-b", "a b", "BASH.x"] {
        for (shell, skips) in [("/bin/dash", 1), ("/bin/bash", 0)] {
            let setting = Setting::new("execve", shell).with(name, "1").with("C", "2");
            assert_eq!(directory.compare(&setting, &[b"probe"]), skips, "{shell} {name}");
        }
    }
}

#[test]
fn variables_that_change_what_a_shell_does_keep_it() {
    for variable in ["IFS=a", "OPTIND=7", "LINENO=7", "ENV=/nonexistent", "BASH_ENV=./script", "PWD=/tmp/."] {
        assert_kept_with(&[b"probe a"], &SHELLS, |setting| setting.with_variable(variable));
    }
    let function = "BASH_FUNC_probe%%=() { echo function; }";
    let others = [
        "BASHOPTS=failglob", "SHELLOPTS=noexec", "POSIXLY_CORRECT=1", "SHLVL=x", "SHLVL=999", "SHLVL=-1", "SHLVL=007",
        "LC_ALL=xx", "OLDPWD=/nonexistent", "PS4=x", "PS1=x", "EXECIGNORE=*", "UID=7", "RANDOM=7",
    ];
    for variable in others.iter().chain(&[function]) {
        assert_kept_with(&[b"probe a"], &["/bin/bash"], |setting| setting.with_variable(variable));
    }
}

#[test]
fn many_variables_are_passed_on_and_too_many_keep_the_shell() {
    let variables = |count: u32| {
        (0..count).fold(Setting::new("execve", "/bin/dash"), |setting, number| {
            setting.with(&format!("NAME{number}"), &number.to_string())
        })
    };
    let directory = Directory::new();
    assert_eq!(directory.compare(&variables(500), &[b"probe"]), 1);
    assert_eq!(directory.compare(&variables(600), &[b"probe"]), 0);
}

#[test]
fn ignored_signals_are_passed_on_and_blocked_ones_keep_the_shell() {
    for signal in ["1", "2", "3", "13", "15"] {
        assert_skipped_with(&[b"probe"], |setting| setting.with("LAUNCH_IGNORE", signal));
    }
    assert_kept_with(&[b"probe"], &SHELLS, |setting| setting.with("LAUNCH_IGNORE", "17"));
    for signal in ["2", "17", "64"] {
        assert_kept_with(&[b"probe"], &SHELLS, |setting| setting.with("LAUNCH_BLOCK", signal));
    }
    let directory = Directory::new();
    for function in ["system", "popen", "posix_spawn"] {
        for variable in ["LAUNCH_IGNORE", "LAUNCH_BLOCK"] {
            for signal in ["2", "3", "15"] {
                directory.compare(&Setting::new(function, "/bin/sh").with(variable, signal), &[b"probe"]);
            }
        }
    }
}

#[test]
fn texts_that_are_too_long_keep_the_shell() {
    let fits = [b"probe ".to_vec(), vec![b'a'; 4090]].concat();
    assert_skipped(&[&fits]);
    let long = [b"probe ".to_vec(), vec![b'a'; 4091]].concat();
    let many = [b"probe".to_vec(), b" a".repeat(127)].concat();
    assert_skipped(&[&many]);
    let more = [b"probe".to_vec(), b" a".repeat(128)].concat();
    let huge = [b"probe ".to_vec(), vec![b'a'; 100_000]].concat();
    assert_kept(&[&long, &more, &huge]);
}

#[test]
fn the_library_can_be_switched_off_for_a_child() {
    let directory = Directory::new();
    let setting = Setting::new("execve", "/bin/sh");
    let page = directory.path().join("counters");
    std::fs::write(&page, [0; 4096]).expect("a file");
    let setting = setting.with("SPAWNSCOPE_ACCEL_EXPLAIN", page.to_str().expect("a path"));
    directory.run(&setting, &[b"env SPAWNSCOPE_ACCEL=0 ./launch execve /bin/sh"], true);
    let counters = std::fs::read(&page).expect("a file");
    assert_eq!(counters[0], 1, "env itself is run directly, and nothing below it");
}

#[test]
fn the_installed_library_is_small_and_needs_only_libc() {
    let installed = installed_library();
    let listed = Command::new("readelf").arg("-d").arg(&installed).output().expect("readelf");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let needed: Vec<_> = text.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(matches!(needed[..], [libc] if libc.contains("[libc.so.6]")), "{needed:?}");
    let size = std::fs::metadata(&installed).expect("the library").len();
    assert!(size < 100_000, "{size} bytes");
}

/// Builds the library as it is installed. Returns its path.
fn installed_library() -> std::path::PathBuf {
    crate::library::succeed(
        Command::new(env!("CARGO"))
            .args(["build", "--locked", "--offline", "--profile", "preload", "--manifest-path"])
            .arg(std::path::Path::new(crate::library::CRATE).join("Cargo.toml")),
    );
    let directory = library().parent().and_then(std::path::Path::parent).expect("cargo's directories");
    directory.join("preload/libvspawn_preload.so")
}
