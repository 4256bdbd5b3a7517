//! Names of call sites.

use crate::answer::Row;

/// Returns the name of a call site: `build.sh:41`, or a function and its module, or the program that ran a script without a file.
pub fn name(row: Row<'_>) -> String {
    let file = row.text("file").filter(|file| !file.is_empty());
    match (file, row.count("line").filter(|line| *line > 0)) {
        (Some(file), Some(line)) => return format!("{file}:{line}"),
        (Some(file), None) => return file.to_owned(),
        _ => {}
    }
    let function = row.text("function");
    let module = row.text("module").map(|module| module.rsplit('/').next().unwrap_or(module));
    match (function, module, row.text("program"), row.text("text")) {
        (Some(function), Some(module), ..) => format!("{function} ({module})"),
        (Some(function), None, ..) => function.to_owned(),
        (None, _, Some(program), Some(text)) => format!("{program} -c '{text}'"),
        (None, _, Some(program), None) => program.to_owned(),
        (None, Some(module), ..) => module.to_owned(),
        _ => "(unknown)".to_owned(),
    }
}
