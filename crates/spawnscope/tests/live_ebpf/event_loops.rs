//! Runtimes whose threads run timers and schedulers while a child runs, instead of waiting for it.
//! The critical path and `--remove` must agree with the truth: the program launches one child after
//! another and does nothing else.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::prelude::*;
use crate::support::workloads::build_go;

/// A child that works for some milliseconds.
const CHILD: &str = "for ((i = 0; i < 6000; i++)); do :; done";
/// Minimum share of the children's time that is critical, and that their removal saves. Between two
/// children, timers delay the parent.
const MIN_SHARE: f64 = 0.75;
/// Maximum difference between the critical time and the time that removal saves, as a share of the
/// larger one.
const MAX_DIFFERENCE: f64 = 0.2;

#[apply(live_test)]
#[needs(Node)]
fn launches_beside_the_timers_of_node_are_critical() {
    let directory = TempDir::new().expect("a directory");
    let script = directory.path().join("main.js");
    let source = format!(
        "const {{ spawn }} = require('child_process');
         setInterval(() => {{}}, 1).unref();
         let left = 30;
         function next() {{
             if (left-- > 0) spawn('bash', ['-c', '{CHILD}'], {{ stdio: 'ignore' }}).on('exit', next);
         }}
         next();"
    );
    std::fs::write(&script, source).expect("a source file");
    assert_children_are_critical(&["/usr/bin/node", script.to_str().expect("a path of characters")]);
}

/// The first test of Go is slow, because Go builds its standard library.
#[apply(live_test)]
#[needs(Go)]
fn launches_beside_the_scheduler_of_go_are_critical() {
    let directory = TempDir::new().expect("a directory");
    let source = format!(
        "package main
        import (\"os/exec\"; \"time\")
        func main() {{
            for i := 0; i < 4; i++ {{
                go func() {{ for range time.Tick(time.Millisecond) {{ }} }}()
            }}
            for i := 0; i < 30; i++ {{
                if exec.Command(\"bash\", \"-c\", \"{CHILD}\").Run() != nil {{ panic(\"bash fails\") }}
            }}
        }}"
    );
    assert_children_are_critical(&[&build_go(directory.path(), &source)]);
}

/// Records a command, and compares the time of its children with their time on the critical path
/// and with what their removal saves.
#[track_caller]
fn assert_children_are_critical(command: &[&str]) {
    best_of_three(|| {
        let record = Record::new().recorded(command.iter().copied());
        let file = record.file();
        let report = report(&file);
        let bash = row_of(&report, "bash");
        let whatif = read(&["whatif", "--remove", "bash", "--json"], &file).json();
        let (total, critical) = (number(bash, "total_ns"), number(bash, "critical_ns"));
        let saved = number(&whatif, "unrecorded_ns") - number(&whatif, "predicted_ns");
        let are_most_critical = critical.min(saved) >= MIN_SHARE * total;
        ok_if(are_most_critical && (critical - saved).abs() <= MAX_DIFFERENCE * critical.max(saved), || {
            format!("of {total} ns, {critical} are critical, and removal saves {saved}")
        })
    });
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no {key}: {row}"))
}
