//! The cost of wrappers around a program: env, scripts that execute it, a version manager's chain of scripts, and a compiled proxy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::{launches, wall_and_call};
use crate::LabError;
use crate::compiler::Compiler;
use crate::context::ExperimentContext;
use crate::outcome::{Outcome, Unit, Value, key};
use crate::shell::find_program;
use crate::worker::protocol::{Program, Setting};
use crate::worker::{Mechanism, Worker};

/// A script that imitates version managers like pyenv: at each call, it calls itself, and programs, several times.
const MANAGER: &str = r#"#!/bin/bash
set -e
case "$1" in
version-file) echo "$ROOT/version" ;;
version-name) file=$("$0" version-file); cat "$file" ;;
which) version=$("$0" version-name); name=$(basename "$2"); echo "$ROOT/$version/$name" ;;
exec) program=$("$0" which "$2"); shift 2; exec "$program" "$@" ;;
esac
"#;
/// The source of a program that imitates proxies like rustup's: it reads its settings and executes another program.
const PROXY: &str = r#"#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
    char path[4096] = {0};
    FILE *file = fopen(SETTINGS, "r");
    if (!file || !fgets(path, sizeof path, file)) return 1;
    arguments[0] = path;
    execv(path, arguments);
    return 127;
}
"#;

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = [key("wrapper", "wrapper", Unit::Text)].into_iter().chain(wall_and_call());
    let mut outcome = Outcome::new("A tiny program behind wrappers", columns.collect());
    let directory = context.directory().join("shims");
    fs::create_dir_all(&directory).map_err(LabError::doing("create a directory"))?;
    let tiny = context.tiny();
    let target = super::text(&context.tiny_path());
    let mut chains = chains(&directory, &context.tiny_path())?;
    match Compiler::find().map(|compiler| compile_proxy(&compiler, &directory, &target)) {
        Some(Ok(path)) => chains.push(("compiled proxy", vec![path])),
        Some(Err(error)) => outcome.note(format!("compiled proxy: {error}")),
        None => outcome.note("no C compiler (cc) found: the compiled proxy is skipped"),
    }
    if find_program("env").is_none() {
        outcome.note("env not found: skipped");
    }
    let worker = Rc::new(Worker::start(&Setting::default())?);
    let cases = chains.iter().map(|(name, argv)| {
        let program = Program::new(argv).with_status(tiny.status);
        launches([Value::from(*name)], &worker, Mechanism::VforkExec, &program)
    });
    let measured = context.interleave(cases.collect());
    outcome.add(&measured);
    if let Some(base) = measured.first() {
        outcome.compare("ratio", &measured, base, 0);
    }
    outcome.note(
        "version manager: a chain of scripts like pyenv's, but shorter: 6 processes and 5 execs of bash; proxy: reads its settings \
         and execs, like rustup's",
    );
    Ok(outcome)
}

/// Returns the wrappers that need no compiler, with their names.
fn chains(directory: &Path, target_path: &Path) -> Result<Vec<(&'static str, Vec<String>)>, LabError> {
    let target = super::text(target_path);
    let mut chains: Vec<(&str, Vec<String>)> = vec![("none", vec![target.clone()])];
    if let Some(env) = find_program("env").map(|path| super::text(&path)) {
        chains.push(("env", vec![env.clone(), target.clone()]));
        chains.push(("env env env", vec![env.clone(), env.clone(), env, target.clone()]));
    }
    let quoted = shlex::try_quote(&target).map_err(|error| LabError::Unavailable(error.to_string()))?;
    for (name, interpreter) in
        [("sh script", "/bin/sh"), ("bash script", "/bin/bash"), ("env bash script", "/usr/bin/env bash")]
    {
        let text = format!("#!{interpreter}\nexec {quoted} \"$@\"\n");
        chains.push((name, vec![write_script(directory, name, &text)?]));
    }
    chains.push(("version manager", vec![write_manager(directory, target_path)?]));
    Ok(chains)
}

fn write_script(directory: &Path, name: &str, text: &str) -> Result<String, LabError> {
    let path = directory.join(name.replace(' ', "-"));
    let doing = LabError::doing(format!("write {}", path.display()));
    fs::write(&path, text).map_err(&doing)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(doing)?;
    Ok(super::text(&path))
}

/// Writes a shim and its manager, whose only version is `current`. Returns the path of the shim.
fn write_manager(directory: &Path, target: &Path) -> Result<String, LabError> {
    let version = directory.join("current");
    let doing = LabError::doing("create a version");
    fs::create_dir_all(&version).map_err(&doing)?;
    fs::copy(target, version.join("tool")).map_err(&doing)?;
    fs::write(directory.join("version"), "current\n").map_err(doing)?;
    let manager: PathBuf = write_script(directory, "manager", MANAGER)?.into();
    let (root, manager) = (quote(directory)?, quote(&manager)?);
    write_script(directory, "tool", &format!("#!/bin/bash\nexport ROOT={root}\nexec {manager} exec tool \"$@\"\n"))
}

fn quote(path: &Path) -> Result<String, LabError> {
    let text = super::text(path);
    shlex::try_quote(&text).map(std::borrow::Cow::into_owned).map_err(|error| LabError::Unavailable(error.to_string()))
}

fn compile_proxy(compiler: &Compiler, directory: &Path, target: &str) -> Result<String, LabError> {
    let settings = directory.join("settings");
    fs::write(&settings, target).map_err(LabError::doing("write settings"))?;
    let definition = format!("-DSETTINGS=\"{}\"", settings.display());
    let path = compiler.compile(PROXY, &directory.join("proxy"), &[&definition])?;
    Ok(super::text(&path))
}
