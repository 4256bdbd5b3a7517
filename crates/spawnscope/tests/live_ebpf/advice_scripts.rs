//! Advice about what scripts launch, on real recordings: a script with a costly habit gets advice, clean work does not.

use serde_json::Value;

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::recording::{self, advice_of_rule};
use crate::support::run::Record;
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Ebpf)]
fn advice_replaces_a_dirname_loop_with_an_expansion() {
    let findings = advice("for i in {1..200}; do d=$(dirname /a/b/c$i); done");
    let dirname = advice_of_rule(&findings, "builtin").expect("advice about dirname");
    assert!(dirname["count"].as_u64().expect("a count") > 100, "{dirname}");
    assert!(text(dirname, "fix").contains("${p%/*}"), "{dirname}");
    assert!(advice_of_rule(&findings, "bare-forks").is_none(), "the forks became dirname: {findings:?}");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn advice_replaces_a_filter_of_a_variable_and_its_subshell() {
    let findings = advice("for i in {1..150}; do x=$(echo abc-$i | sed 's/-.*//'); done");
    let sed = advice_of_rule(&findings, "builtin").expect("advice about sed");
    assert!(text(sed, "fix").contains("${x%%-*}"), "{sed}");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn forks_for_functions_are_reported() {
    let findings = advice("f() { echo x; }; for i in {1..400}; do y=$(f); done");
    let forks = advice_of_rule(&findings, "bare-forks").expect("advice about forks");
    assert!(text(forks, "fix").contains("REPLY"), "{forks}");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn one_launch_per_file_gets_advice_to_batch() {
    let touch = advice("cd $(mktemp -d) && seq 200 | xargs -n1 touch && rm -r $PWD");
    let touch = advice_of_rule(&touch, "batch").expect("advice about touch");
    assert!(text(touch, "fix").contains("xargs touch"), "{touch}");
    let chmod = "cd $(mktemp -d) && touch {1..200} && find . -type f -exec chmod 600 {} \\; ; rm -r $PWD";
    let chmod = advice(chmod);
    let chmod = advice_of_rule(&chmod, "batch").expect("advice about chmod");
    assert!(text(chmod, "fix").contains("{} +"), "{chmod}");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn an_interpreter_that_starts_repeatedly_is_reported() {
    // On a busy machine, the saving may be too uncertain for advice.
    let perl = best_of_three(|| {
        let findings = advice("for i in {1..60}; do perl -e 'print 1'; done >/dev/null");
        advice_of_rule(&findings, "interpreter-start").cloned().ok_or_else(|| format!("{findings:?}"))
    });
    assert!(text(&perl, "fix").contains("one perl"), "{perl}");
}

/// Records a bash script, and returns the advice for it.
fn advice(script: &str) -> Vec<Value> {
    let record = Record::new();
    record.run(["bash", "-c", script]).expect_code(0);
    recording::advice(&record.file())
}

/// Returns a text, or a list of lines, as JSON.
fn text(advice: &Value, key: &str) -> String {
    advice[key].to_string()
}

#[apply(live_test)]
#[needs(Ebpf)]
fn advice_skips_a_wrapper_script() {
    let record = Record::new();
    let [tool, real] = ["tool", "real"].map(|name| record.directory().join(name));
    let script = format!("#!/bin/sh\nTOOL_HOME=/x\nexport TOOL_HOME\nexec {}\n", real.display());
    for (path, script) in [(&tool, script.as_str()), (&real, "#!/bin/sh\n:\n")] {
        std::fs::write(path, script).expect("a script");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, executable).expect("an executable script");
    }
    let script = format!("for i in {{1..100}}; do {}; done", tool.display());
    record.run(["bash", "-c", &script]).expect_code(0);
    let findings = recording::advice(&record.file());
    let shims = advice_of_rule(&findings, "shims").expect("advice about the wrapper");
    assert!(text(shims, "fix").contains("/real"), "{shims}");
    assert!(text(shims, "evidence").contains("tool -> real"), "{shims}");
}

/// The load of other processes may look like a habit of the script, so there are three attempts.
#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn clean_work_gets_no_advice() {
    let scripts = [
        "head -c 100000000 /dev/zero | cat | wc -c",
        "sleep 0.3",
        "cd $(mktemp -d) && for i in {1..400}; do echo \"int f$i(int x) { return x * $i; }\"; done >a.c && cc -c a.c && rm -r $PWD",
        "for i in $(seq $(nproc)); do (for ((n = 0; n < 40000; n++)); do :; done) & done; wait",
        "seq 200000 | sort -n | tail -n1",
    ];
    for script in scripts {
        best_of_three(|| {
            let findings = advice(script);
            ok_if(findings.is_empty(), || format!("{script}: {findings:?}"))
        });
    }
}
