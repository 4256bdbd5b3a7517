//! Tests of the checks `loader-cache` and `loader-environment`.

use spawnscope_data::event::Nanos;
use spawnscope_doctor::{Measured, Severity};

use crate::tree::{
    Tree, expect_finding, expect_note, expect_note_with, expect_nothing, expect_problem, expect_problem_with,
    usual_measurements,
};

const NEW_CACHE: &str = "glibc-ld.so.cache1.1";
const OLD_CACHE: &str = "ld.so-1.7.0";

fn tree_with_cache(cache: &str) -> Tree {
    Tree::new().file("lib64/ld-linux-x86-64.so.2", "").file("etc/ld.so.cache", cache)
}

#[test]
fn a_missing_or_unusable_cache_is_a_problem() {
    let missing = Tree::new().file("lib64/ld-linux-x86-64.so.2", "");
    let mut measured = Measured { without_library_search: Some(Nanos(640_000)), ..usual_measurements() };
    let words = ["is missing", "ldconfig", "`true` takes 700 us, or 640 us"];
    let finding = expect_problem_with("loader-cache", &missing.machine(), &measured, &words);
    assert_eq!(finding.effect.unwrap().span, Nanos(60_000));
    // The search is not slower, because its time is within the noise.
    measured.without_library_search = Some(Nanos(720_000));
    let finding = expect_problem_with("loader-cache", &missing.machine(), &measured, &[]);
    assert_eq!(finding.effect, None);
    let damaged = tree_with_cache("something else");
    expect_problem("loader-cache", &damaged.machine(), &["is not a cache"]);
    let private = tree_with_cache(NEW_CACHE).mode("etc/ld.so.cache", 0o600);
    expect_problem("loader-cache", &private.machine(), &["cannot be read by all users"]);
}

#[test]
fn a_good_cache_and_a_machine_without_glibc_have_no_findings() {
    for cache in [NEW_CACHE, OLD_CACHE] {
        expect_nothing("loader-cache", &tree_with_cache(cache).machine(), &usual_measurements());
    }
    let nix = Tree::new().file("lib64/ld-linux-x86-64.so.2", "").file("etc/NIXOS", "");
    expect_nothing("loader-cache", &nix.machine(), &usual_measurements());
    expect_nothing("loader-cache", &Tree::new().file("lib/ld-musl-x86_64.so.1", "").machine(), &usual_measurements());
}

#[test]
fn loader_variables_are_reported_with_their_cost() {
    let measured = Measured { without_loader_variables: Some(Nanos(500_000)), ..usual_measurements() };
    let tree = Tree::new().file("opt/spy.so", "");
    let machine = tree.machine().with_variable("LD_PRELOAD", "/opt/spy.so");
    let finding = expect_problem_with("loader-environment", &machine, &measured, &["LD_PRELOAD=/opt/spy.so"]);
    assert_eq!(finding.effect.unwrap().span, Nanos(200_000));
    let cheap = Measured { without_loader_variables: Some(Nanos(690_000)), ..usual_measurements() };
    expect_note_with("loader-environment", &machine, &cheap, &["LD_PRELOAD"]);
    let dead = tree.machine().with_variable("LD_LIBRARY_PATH", "/opt:/gone/lib:$ORIGIN/x");
    expect_problem_with("loader-environment", &dead, &cheap, &["missing: /gone/lib"]);
    for name in ["LD_AUDIT", "LD_BIND_NOW", "LD_DEBUG"] {
        expect_problem_with("loader-environment", &tree.machine().with_variable(name, "1"), &measured, &[name]);
    }
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
    let finding = expect_note("loader-environment", &debug, &["LD_DEBUG=password=***"]);
    assert!(!format!("{finding:?}").contains("hunter2"), "{finding:?}");
}

#[test]
fn a_library_in_ld_so_preload_is_a_problem_and_an_empty_variable_is_not() {
    let tree = Tree::new().file("etc/ld.so.preload", "# ours\n/usr/lib/gone.so # for all\n");
    expect_problem(
        "loader-environment",
        &tree.machine(),
        &["ld.so.preload", "it names /usr/lib/gone.so", "missing: /usr/lib/gone.so"],
    );
    let empty = Tree::new().file("etc/ld.so.preload", "# nothing here\n");
    expect_nothing("loader-environment", &empty.machine().with_variable("LD_PRELOAD", ""), &usual_measurements());
}
