//! Checks pairs of programs: `before` has a cause of slow launches, and in `after` it is fixed.
//! Both must do the same work, the fix must remove the launches that it claims to remove, `whatif`
//! must accept the change, and `advise` must find the cause. This test times nothing:
//! `benchmarks/fixes.py` measures the accuracy of the predictions. `pair.rs` describes the files of
//! a pair.

#[expect(dead_code, unused_macros, reason = "shared with the live tests, which use the rest")]
#[path = "../support/mod.rs"]
mod support;

mod pair;
mod truth;

use std::process::ExitCode;

use pair::{Pair, Variant};
use support::LiveTest;
use support::attempts::{best_of_three, ok_if};
use support::needs::Need;
use support::recording::{launches, read, report};
use truth::Truth;

/// Pairs whose fix saves almost nothing, as intended.
const NEAR_ZERO: [&str; 1] = ["make_off_the_path"];
/// The maximum ratio of predicted to recorded wall for these pairs, whose saving the replay error
/// can exceed.
const MAX_WALL_RATIO: f64 = 1.05;

/// The pairs that are always checked: one for each change of `whatif`, and one for each language.
/// The others need time.
const SAMPLE: [&str; 12] = [
    "cat_of_a_file", "close_descriptors", "date_loop", "huge_pages", "make_recursive", "node_exec_sync", "one_cpu",
    "perl_basename", "polling_parent", "python_os_system", "static_child", "xargs_batch",
];

/// Pairs for which `advise --patch` must print a patch. It may print one for each of the others.
const PATCHED: [&str; 10] = [
    "awk_in_a_substitution", "cat_of_a_file", "cp_loop", "dirname_loop", "expr_and_basename", "fields_of_lines",
    "make_shell_variable", "needless_shell", "npm_scripts", "python_os_system",
];

/// Runs a test for each pair.
fn main() -> ExitCode {
    let known = Pair::names();
    assert!(SAMPLE.iter().all(|name| known.iter().any(|pair| pair == name)), "the sample names pairs");
    support::run_all(known.into_iter().flat_map(tests_of).collect())
}

/// Returns the test of a pair, which needs time unless the pair is in the sample.
fn tests_of(name: String) -> Vec<LiveTest> {
    let name: &str = name.leak();
    let test = LiveTest { needs: needs_of(name), name, run: check, location: (file!(), line!()) };
    let slow = LiveTest { needs: [test.needs, &[Need::Pairs]].concat().leak(), ..test };
    if SAMPLE.contains(&name) && std::env::var_os("SPAWNSCOPE_TEST_SLOW").is_none() { vec![test] } else { vec![slow] }
}

fn needs_of(name: &str) -> &'static [Need] {
    match name {
        "convert_images"
        | "needless_shell"
        | "preexec_function"
        | "python_child_script"
        | "python_os_system"
        | "python_popen_count"
        | "python_timeout" => &[Need::Ebpf, Need::Cc, Need::Python],
        "python_bc_again" => &[Need::Ebpf, Need::Bc, Need::Python],
        "perl_backticks" | "perl_basename" | "perl_date" => &[Need::Ebpf, Need::Perl],
        "node_exec_sync" => &[Need::Ebpf, Need::Node],
        "npm_completion" | "npm_scripts" => &[Need::Ebpf, Need::Node, Need::Npm],
        "node_git" => &[Need::Ebpf, Need::Node, Need::Git],
        "git_hash_per_file" | "git_root_again" => &[Need::Ebpf, Need::Git],
        "pkg_config_again" => &[Need::Ebpf, Need::PkgConfig],
        "scanner" => &[Need::Ebpf, Need::Cc, Need::MountNs, Need::Fanotify],
        _ => &[Need::Ebpf, Need::Cc],
    }
}

fn check(name: &str) {
    let pair = Pair::build(name);
    let mut before = pair.record(Variant::Before);
    let after = pair.record(Variant::After);
    assert!(before.output == after.output, "`after` does not print what `before` prints: it does not do the same work");
    Truth::read(&pair).check(&launches(&before.file), &launches(&after.file));
    let max_ratio = if NEAR_ZERO.contains(&name) { MAX_WALL_RATIO } else { 1.0 };
    // On a busy machine, the replay error can exceed a small saving.
    let mut is_first = true;
    best_of_three(|| {
        if !std::mem::take(&mut is_first) {
            before = pair.record(Variant::Before);
        }
        let (wall, predicted) = prediction(&pair, &before.file);
        ok_if(0.0 < predicted && predicted < max_ratio * wall, || {
            format!("predicts {predicted} ns for a wall of {wall} ns")
        })?;
        let (expected, given) = (pair.text("advice"), advice(&before.file));
        let patched = pair.patched_output(&before.file);
        ok_if(patched.is_some() || !PATCHED.contains(&name), || "the patch is empty".to_owned())?;
        assert!(patched.is_none_or(|patched| patched == before.output), "the patched program does not print the same");
        ok_if(expected.split_whitespace().any(|rule| rule == "-" || given.iter().any(|each| each == rule)), || {
            format!("gives the advice {given:?}, none of `{}`", expected.trim())
        })
    });
}

/// Returns the rules that have advice.
fn advice(recording: &std::path::Path) -> Vec<String> {
    let all = support::recording::advice(recording).into_iter();
    all.filter_map(|each| Some(each["rule"].as_str()?.to_owned())).collect()
}

/// Returns the recorded and the predicted wall.
fn prediction(pair: &Pair, recording: &std::path::Path) -> (f64, f64) {
    let flags = pair.text("whatif");
    let words: Vec<&str> = ["whatif", "--json"].into_iter().chain(flags.split_whitespace()).collect();
    let prediction = read(&words, recording).json();
    let [wall, predicted, low, high] = ["wall_ns", "predicted_ns", "low_ns", "high_ns"].map(|key| {
        let value = prediction[key].as_f64();
        value.unwrap_or_else(|| panic!("whatif --json has no number `{key}`: {prediction}"))
    });
    let recorded = report(recording)["wall_ns"].as_f64();
    assert_eq!(Some(wall), recorded, "whatif and the report have the same wall");
    let has_changes = !prediction["changes"][0].is_null();
    assert!(has_changes, "`{flags}` changes nothing: {prediction}");
    assert!(
        low <= predicted && predicted <= high,
        "predicts {predicted} ns, outside its own interval, {low} to {high}"
    );
    (wall, predicted)
}
