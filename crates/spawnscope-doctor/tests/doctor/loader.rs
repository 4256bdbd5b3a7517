//! Tests of the checks `loader-cache`, `loader-environment`, `c-library` and `binfmt`.

use std::path::PathBuf;

use spawnscope_data::event::Nanos;
use spawnscope_doctor::{Machine, Measured, Severity};

use crate::library::{Format, cache, library};
use crate::tree::{Tree, diagnose, expect_finding, expect_nothing, fix, usual_measurements};

fn cache_with_libknown() -> Vec<u8> {
    cache(Format::New, &["libknown.so.1"])
}

fn tree_with_cache(cache: &[u8]) -> Tree {
    Tree::new()
        .file("usr/lib/libknown.so.1.2.3", library(Some("libknown.so.1")))
        .file("lib64/ld-linux-x86-64.so.2", "")
        .file("etc/ld.so.cache", cache)
}

#[test]
fn a_missing_or_unusable_cache_is_a_problem() {
    let missing = Tree::new().file("lib64/ld-linux-x86-64.so.2", "");
    let mut measured = Measured { without_library_search: Some(Nanos(640_000)), ..usual_measurements() };
    let words = ["is missing", "ldconfig", "`true` takes 700 us, or 640 us"];
    let finding = expect_finding("loader-cache", &missing.machine(), &measured, Severity::Problem, &words);
    assert_eq!(finding.effect.unwrap().span, Nanos(60_000));
    // The search is not slower, because its time is within the noise.
    measured.without_library_search = Some(Nanos(720_000));
    let finding = expect_finding("loader-cache", &missing.machine(), &measured, Severity::Problem, &[]);
    assert_eq!(finding.effect, None);
    let damaged = tree_with_cache(b"something else");
    expect_finding("loader-cache", &damaged.machine(), &usual_measurements(), Severity::Problem, &["is not a cache"]);
    let private = tree_with_cache(&cache_with_libknown()).mode("etc/ld.so.cache", 0o600);
    expect_finding(
        "loader-cache",
        &private.machine(),
        &usual_measurements(),
        Severity::Problem,
        &["cannot be read by all users"],
    );
}

#[test]
fn libraries_newer_than_the_cache_are_noted() {
    let old = tree_with_cache(&cache_with_libknown()).file("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
    let tree = old.file("etc/ld.so.conf.d/own.conf", "# ours\n/opt/lib/\n");
    // The cache is dated back, because file times have a limited resolution.
    let made = std::fs::metadata(tree.root().join("etc/ld.so.cache")).unwrap();
    let past = made.modified().unwrap() - std::time::Duration::from_secs(100);
    let cache = std::fs::File::options().write(true).open(tree.root().join("etc/ld.so.cache")).unwrap();
    cache.set_modified(past).unwrap();
    expect_nothing("loader-cache", &tree.machine(), &usual_measurements());
    // The configuration names another directory after the cache was made; its libraries are older. The pauses are needed because file times
    // have a limited resolution.
    let tree = tree.file("opt/old/libold.so.1", library(None));
    std::thread::sleep(std::time::Duration::from_millis(50));
    cache.set_modified(std::time::SystemTime::now()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let tree = tree.file("etc/ld.so.conf.d/own.conf", "# ours\n/opt/old\n");
    expect_finding(
        "loader-cache",
        &tree.machine(),
        &usual_measurements(),
        Severity::Note,
        &["1 library", "/opt/old/libold.so.1"],
    );
    cache.set_modified(past).unwrap();
    let tree = tree.file("etc/ld.so.conf.d/own.conf", "# ours\n/opt/lib/\n");
    let tree = tree.file("opt/lib/libnew.so.2", library(Some("libnew.so.2"))).file("opt/lib/plugin.so", library(None));
    expect_finding(
        "loader-cache",
        &tree.machine(),
        &usual_measurements(),
        Severity::Note,
        &["1 library", "/opt/lib/libnew.so.2"],
    );
}

/// Makes the cache older than everything else.
fn with_old_cache(tree: Tree) -> Tree {
    let path = tree.root().join("etc/ld.so.cache");
    let cache = std::fs::File::options().write(true).open(path).unwrap();
    cache.set_modified(std::time::UNIX_EPOCH).unwrap();
    tree
}

#[test]
fn libraries_are_looked_up_by_soname_in_each_format_of_the_cache() {
    let names = ["libother.so.0", "libGLX_mesa.so.0", "libXaw.so.7"];
    for format in [Format::New, Format::Old, Format::Both] {
        let tree = tree_with_cache(&cache(format, &[&names[..], &["libknown.so.1"]].concat()))
            // Files and a link whose names differ from the SONAMEs of their libraries.
            .file("usr/lib/libGLX_mesa.so.0.0.0", library(Some("libGLX_mesa.so.0")))
            .link("usr/lib/libGLX_indirect.so.0", "libGLX_mesa.so.0.0.0")
            .file("usr/lib/libXaw7.so.7.0.0", library(Some("libXaw.so.7")))
            // Files that ldconfig skips: Python code for gdb, libraries for other processors, dangling links.
            .file("usr/lib/libstdc++.so.6.0.30-gdb.py", "import gdb\n")
            .file("usr/lib/libs390.so.1", {
                let mut foreign = library(Some("libs390.so.1"));
                foreign[18] = 22;
                foreign
            })
            .link("usr/lib/libgone.so.1", "libgone.so.1.0");
        let tree = with_old_cache(tree);
        expect_nothing("loader-cache", &tree.machine(), &usual_measurements());
        // `other.so.0` is the end of a string in the cache, but not a name in it. The file and the link are one library.
        let tree = tree
            .file("usr/lib/libmine.so.1.0", library(Some("other.so.0")))
            .link("usr/lib/libmine.so.1", "libmine.so.1.0");
        let words = ["1 library", "/usr/lib/libmine.so.1"];
        expect_finding("loader-cache", &tree.machine(), &usual_measurements(), Severity::Note, &words);
    }
}

#[test]
fn directories_of_a_relative_include_are_examined_unless_they_do_not_answer() {
    let tree = tree_with_cache(&cache_with_libknown())
        .file("etc/ld.so.conf", "include ld.so.conf.d/*.conf\n")
        .file("etc/ld.so.conf.d/own.conf", "/opt/lib\n")
        .file("opt/lib/libnew.so.2", library(None));
    let tree = with_old_cache(tree);
    expect_finding("loader-cache", &tree.machine(), &usual_measurements(), Severity::Note, &["/opt/lib/libnew.so.2"]);
    let hung = Measured { unresponsive: vec![PathBuf::from("/opt/lib")], ..usual_measurements() };
    let diagnosis = diagnose("loader-cache", &tree.machine(), &hung);
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    assert!(diagnosis.not_examined[0].what.contains("/opt/lib"), "{diagnosis:?}");
}

#[test]
fn a_truncated_cache_reports_no_libraries() {
    for format in [Format::New, Format::Old] {
        let mut cut = cache(format, &["libknown.so.1", "libother.so.1"]);
        cut.truncate(40);
        let tree = with_old_cache(tree_with_cache(&cut));
        let diagnosis = diagnose("loader-cache", &tree.machine(), &usual_measurements());
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.not_examined[0].what.contains("truncated"), "{diagnosis:?}");
    }
}

#[test]
fn a_good_cache_and_a_machine_without_glibc_have_no_findings() {
    expect_nothing("loader-cache", &tree_with_cache(&cache_with_libknown()).machine(), &usual_measurements());
    let nix = Tree::new().file("lib64/ld-linux-x86-64.so.2", "").file("etc/NIXOS", "");
    expect_nothing("loader-cache", &nix.machine(), &usual_measurements());
    expect_nothing("loader-cache", &Tree::new().file("lib/ld-musl-x86_64.so.1", "").machine(), &usual_measurements());
}

#[test]
fn loader_variables_are_reported_with_their_cost() {
    let measured = Measured { without_loader_variables: Some(Nanos(500_000)), ..usual_measurements() };
    let tree = Tree::new().file("opt/spy.so", "");
    let machine = tree.machine().with_variable("LD_PRELOAD", "/opt/spy.so");
    let finding =
        expect_finding("loader-environment", &machine, &measured, Severity::Problem, &["LD_PRELOAD=/opt/spy.so"]);
    assert_eq!(finding.effect.unwrap().span, Nanos(200_000));
    let cheap = Measured { without_loader_variables: Some(Nanos(690_000)), ..usual_measurements() };
    expect_finding("loader-environment", &machine, &cheap, Severity::Note, &["LD_PRELOAD"]);
    let dead = tree.machine().with_variable("LD_LIBRARY_PATH", "/opt:/gone/lib:$ORIGIN/x");
    expect_finding("loader-environment", &dead, &cheap, Severity::Problem, &["missing: /gone/lib"]);
    for name in ["LD_AUDIT", "LD_BIND_NOW", "LD_DEBUG"] {
        expect_finding(
            "loader-environment",
            &tree.machine().with_variable(name, "1"),
            &measured,
            Severity::Problem,
            &[name],
        );
    }
}

#[test]
fn errors_of_the_loader_are_quoted() {
    let machine = Machine::with_root("/").with_variable("PATH", "/usr/bin:/bin");
    let preload = machine.clone().with_variable("LD_PRELOAD", "libnothere.so /gone/x.so");
    let words = ["libnothere.so (cannot open shared object file)", "missing: /gone/x.so"];
    let finding = expect_finding("loader-environment", &preload, &usual_measurements(), Severity::Problem, &words);
    assert!(!format!("{finding:?}").contains("/gone/x.so ("), "{finding:?}");
    let audit = machine.with_variable("LD_AUDIT", "libnothere.so");
    expect_finding("loader-environment", &audit, &usual_measurements(), Severity::Problem, &["libnothere.so ("]);
}

#[test]
fn empty_entries_of_ld_library_path_are_problems_and_secrets_are_masked() {
    let tree = Tree::new().directory("opt");
    for (value, severity, words) in [
        ("/opt:", Severity::Problem, "empty or relative entry"),
        (":/opt", Severity::Problem, "empty or relative entry"),
        ("/opt::/opt", Severity::Problem, "empty or relative entry"),
        ("lib:/opt", Severity::Problem, "empty or relative entry"),
        ("/opt", Severity::Note, "LD_LIBRARY_PATH=/opt:"),
    ] {
        let machine = tree.machine().with_variable("LD_LIBRARY_PATH", value);
        expect_finding("loader-environment", &machine, &usual_measurements(), severity, &[words]);
    }
    let debug = tree.machine().with_variable("LD_DEBUG", "password=hunter2");
    let finding =
        expect_finding("loader-environment", &debug, &usual_measurements(), Severity::Note, &["LD_DEBUG=password=***"]);
    assert!(!format!("{finding:?}").contains("hunter2"), "{finding:?}");
}

#[test]
fn a_library_in_ld_so_preload_is_a_problem_and_an_empty_variable_is_not() {
    let tree = Tree::new().file("etc/ld.so.preload", "# ours\n/usr/lib/gone.so # for all\n");
    expect_finding(
        "loader-environment",
        &tree.machine(),
        &usual_measurements(),
        Severity::Problem,
        &["ld.so.preload", "it names /usr/lib/gone.so", "missing: /usr/lib/gone.so"],
    );
    let empty = Tree::new().file("etc/ld.so.preload", "# nothing here\n");
    expect_nothing("loader-environment", &empty.machine().with_variable("LD_PRELOAD", ""), &usual_measurements());
}

fn tree_with_glibc(version: &str) -> Tree {
    let banner = format!("\x7fELF...GNU C Library (X GLIBC {version}-1) stable release version {version}.\n");
    Tree::new().file("lib/x86_64-linux-gnu/libc.so.6", banner)
}

#[test]
fn each_version_of_glibc_has_the_findings_for_its_way_to_launch() {
    expect_finding(
        "c-library",
        &tree_with_glibc("2.23").machine(),
        &usual_measurements(),
        Severity::Problem,
        &["fork", "2.23"],
    );
    let found = diagnose("c-library", &tree_with_glibc("2.28").machine(), &usual_measurements()).findings;
    assert_eq!(found[0].title, "this C library's system and popen fork");
    assert_eq!(found.len(), 2, "{found:?}");
    let finding = expect_finding(
        "c-library",
        &tree_with_glibc("2.31").machine(),
        &usual_measurements(),
        Severity::Note,
        &["one at a time"],
    );
    assert_eq!(finding.effect.unwrap().span, Nanos(12_200));
    let found = diagnose("c-library", &tree_with_glibc("2.36").machine(), &usual_measurements()).findings;
    assert_eq!(found.len(), 2, "{found:?}");
    expect_finding("c-library", &tree_with_glibc("2.41").machine(), &usual_measurements(), Severity::Note, &["popen"]);
    expect_nothing("c-library", &tree_with_glibc("2.42").machine(), &usual_measurements());
    expect_nothing("c-library", &Tree::new().machine(), &usual_measurements());
}

fn with_binfmt_entry(text: &str) -> Tree {
    Tree::new()
        .file("proc/sys/fs/binfmt_misc/status", "enabled")
        .file("usr/bin/qemu-aarch64", "")
        .file("proc/sys/fs/binfmt_misc/qemu-aarch64", text)
}

const MAGIC: &str = "7f454c460201010000000000000000000200b700";

fn with_interpreter(interpreter: &str, magic: &str) -> Tree {
    let mask = "ffffffffffffff00fffffffffffffffffeffffff";
    with_binfmt_entry(&format!("enabled\ninterpreter {interpreter}\nflags: OC\noffset 0\nmagic {magic}\nmask {mask}\n"))
}

#[test]
fn binfmt_entries_that_emulate_break_or_take_over_programs_are_reported() {
    if cfg!(target_arch = "x86_64") {
        let emulated = with_interpreter("/usr/bin/qemu-aarch64", MAGIC);
        let words = ["emulated", "qemu-aarch64"];
        expect_finding("binfmt", &emulated.machine(), &usual_measurements(), Severity::Note, &words);
        let native = with_interpreter("/usr/bin/qemu-aarch64", &MAGIC.replace("b700", "3e00"));
        let found = diagnose("binfmt", &native.machine(), &usual_measurements()).findings;
        assert!(found[0].title.contains("native programs"), "{found:?}");
    }
    let gone = with_interpreter("/usr/bin/gone", MAGIC);
    let found = diagnose("binfmt", &gone.machine(), &usual_measurements()).findings;
    assert!(found[0].title.contains("does not exist") && found[0].severity == Severity::Problem, "{found:?}");
    let disabled = with_binfmt_entry("disabled\ninterpreter /usr/bin/gone\n");
    expect_nothing("binfmt", &disabled.machine(), &usual_measurements());
    expect_nothing("binfmt", &Tree::new().machine(), &usual_measurements());
}

#[test]
fn the_fix_removes_a_binfmt_entry_from_where_it_was_configured() {
    let gone = with_interpreter("/usr/bin/gone", MAGIC);
    let now = "  echo -1 >/proc/sys/fs/binfmt_misc/qemu-aarch64";
    let only_now = fix("binfmt", &gone);
    assert!(only_now.contains(now) && !only_now.contains("permanently"), "{only_now}");
    let debian = fix("binfmt", &gone.file("var/lib/binfmts/qemu-aarch64", "qemu\n"));
    assert!(debian.contains(now) && debian.contains("  update-binfmts --disable qemu-aarch64"), "{debian}");
    for (directory, fixed) in
        [("etc/binfmt.d", "remove it from /etc/binfmt.d/qemu.conf"), ("usr/lib/binfmt.d", "/etc/binfmt.d/qemu.conf")]
    {
        let entry = "# ours\n:qemu-aarch64:M::x::/usr/bin/gone:\n";
        let configured = with_interpreter("/usr/bin/gone", MAGIC)
            .file(&format!("{directory}/other.conf"), ":other:M::x::/bin/other:\n")
            .file(&format!("{directory}/qemu.conf"), entry);
        let found = fix("binfmt", &configured);
        assert!(found.contains(&format!("/{directory}/qemu.conf")) && found.ends_with(fixed), "{found}");
    }
    let inside = fix("binfmt", &with_interpreter("/usr/bin/gone", MAGIC).file(".dockerenv", ""));
    assert!(inside.contains("on the host"), "{inside}");
}
