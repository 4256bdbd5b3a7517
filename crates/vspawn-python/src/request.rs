//! Converts the arguments of `run` and `Popen` to a command.

use std::ffi::OsString;

use pyo3::exceptions::{PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use vspawn::Command;

use crate::failure::NamedObjects;
use crate::values::{
    GROUPS, Stream, USERS, descriptor_number, directory, file_number, fs_string, id, stdio, supplementary_group, words,
};

/// A command, and the objects that an exception may name if it fails.
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) named: NamedObjects,
}

/// Options whose effect depends on other options.
struct CombinedOptions {
    close_fds: bool,
    restore_signals: bool,
    pass_fds: Vec<i32>,
}

impl Request {
    /// Converts the arguments. `streams` are stdin, stdout and stderr; `options` are the options
    /// that `set_option` handles.
    pub(crate) fn new(
        args: &Bound<'_, PyAny>,
        streams: [&Bound<'_, PyAny>; 3],
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Request> {
        // An empty dict is common, and each look-up in it would create a string.
        let options = options.filter(|options| !options.is_empty());
        let mut request = Request::for_program(args, options)?;
        let mut combined = CombinedOptions { close_fds: true, restore_signals: true, pass_fds: Vec::new() };
        for (name, value) in options.into_iter().flatten() {
            let name = name.cast::<PyString>()?.to_string();
            request.set_option(&name, &value, &mut combined)?;
        }
        request.set_combined_options(args.py(), &combined)?;
        // SAFETY: the command is prepared with the GIL held, and Python changes the environment
        // with the GIL held too. `subprocess` reads it the same way.
        unsafe { request.command.env_unlocked() };
        let command = &mut request.command;
        let [stdin, stdout, stderr] = streams;
        stdio(stdin, Stream::Input)?.map(|stdin| command.stdin(stdin));
        stdio(stdout, Stream::Output)?.map(|stdout| command.stdout(stdout));
        stdio(stderr, Stream::Error)?.map(|stderr| command.stderr(stderr));
        Ok(request)
    }

    fn for_program(args: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Request> {
        let words = words(args)?;
        let given = options.map(|options| options.get_item("executable")).transpose()?;
        let executable = given.flatten().filter(|executable| !executable.is_none());
        let program = executable.as_ref().unwrap_or(&words[0]);
        let mut command = Command::new(fs_string(program)?);
        if executable.is_some() {
            command.arg0(fs_string(&words[0])?);
        }
        for word in &words[1..] {
            command.arg(fs_string(word)?);
        }
        let named = NamedObjects { program: Some(program.clone().unbind()), cwd: None };
        Ok(Request { command, named })
    }

    /// Sets one option. None, and the other defaults of `subprocess`, have the same meaning as
    /// there.
    fn set_option(&mut self, name: &str, value: &Bound<'_, PyAny>, combined: &mut CombinedOptions) -> PyResult<()> {
        match name {
            "close_fds" => combined.close_fds = value.is_truthy()?,
            "restore_signals" => combined.restore_signals = value.is_truthy()?,
            "start_new_session" => drop(self.command.new_session(value.is_truthy()?)),
            // `run` and `Popen` leave shell=True to `subprocess`; the functions for asyncio do not.
            "shell" if value.is_truthy()? => return Err(value_error(NO_SHELL)),
            "executable" | "shell" => {}
            _ if value.is_none() => check_name(name)?,
            "cwd" => {
                self.command.current_dir(fs_string(value)?);
                self.named.cwd = Some(value.clone().unbind());
            }
            "env" => self.set_env(value)?,
            "pass_fds" => combined.pass_fds = list(value, descriptor_number)?,
            "umask" => match value.extract::<i32>()? {
                -1 => {}
                mask => drop(self.command.umask(u32::try_from(mask)?)),
            },
            "process_group" => match value.extract::<i32>()? {
                -1 => {}
                group => drop(self.command.process_group(group)),
            },
            "user" => drop(self.command.uid(id(value, &USERS)?)),
            "group" => drop(self.command.gid(id(value, &GROUPS)?)),
            "extra_groups" => drop(self.command.groups(&list(value, supplementary_group)?)),
            "rlimits" => self.set_limits(value)?,
            "nice" => drop(self.command.nice(value.extract()?)),
            "cpus" => drop(self.command.affinity(list(value, |cpu| cpu.extract::<usize>())?)),
            "cgroup" => drop(self.command.cgroup(directory(value)?)),
            "pdeathsig" => drop(self.command.parent_death_signal(value.extract()?)),
            "chroot" => drop(self.command.chroot(fs_string(value)?)),
            "no_new_privs" => drop(self.command.no_new_privileges(value.is_truthy()?)),
            "fds" => self.set_descriptors(value)?,
            "controlling_terminal" => drop(self.command.controlling_terminal(value.extract()?)),
            "preexec_fn" => return Err(value_error(NO_HOOK)),
            _ => check_name(name)?,
        }
        Ok(())
    }

    fn set_env(&mut self, env: &Bound<'_, PyAny>) -> PyResult<()> {
        self.command.env_clear();
        for pair in env.call_method0("items")?.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let key: OsString = fs_string(&key)?;
            if key.as_encoded_bytes().contains(&b'=') {
                return Err(value_error("illegal environment variable name"));
            }
            self.command.env(key, fs_string(&value)?);
        }
        Ok(())
    }

    /// Sets resource limits, in the order of the mapping. A value is one limit, or a soft and a
    /// hard one; a negative limit (`resource.RLIM_INFINITY`) is none.
    fn set_limits(&mut self, limits: &Bound<'_, PyAny>) -> PyResult<()> {
        for pair in limits.call_method0("items")?.try_iter()? {
            let (resource, value): (u32, Bound<'_, PyAny>) = pair?.extract()?;
            let (soft, hard): (i64, i64) = value.extract().or_else(|_| value.extract().map(|both| (both, both)))?;
            let [soft, hard] = [soft, hard].map(|limit| u64::try_from(limit).unwrap_or(u64::MAX));
            self.command.resource_limit(resource, soft, hard);
        }
        Ok(())
    }

    /// Gives the child descriptors under other numbers.
    fn set_descriptors(&mut self, fds: &Bound<'_, PyAny>) -> PyResult<()> {
        for pair in fds.call_method0("items")?.try_iter()? {
            let (target, source): (i32, Bound<'_, PyAny>) = pair?.extract()?;
            if target < 3 {
                return Err(value_error(
                    "fds sets descriptors from 3 on: use stdin=, stdout= and stderr= for the others",
                ));
            }
            self.command.fd_number(target, file_number(&source)?);
        }
        Ok(())
    }

    fn set_combined_options(&mut self, py: Python<'_>, combined: &CombinedOptions) -> PyResult<()> {
        if !combined.close_fds && !combined.pass_fds.is_empty() {
            let class = py.get_type::<PyRuntimeWarning>();
            PyErr::warn(py, &class, c"pass_fds overriding close_fds.", 2)?;
        }
        let close = combined.close_fds || !combined.pass_fds.is_empty();
        self.command.close_others(close);
        for fd in &combined.pass_fds {
            self.command.keep(*fd);
        }
        if combined.restore_signals {
            // When Python starts, it ignores SIGPIPE, which the core restores by default, and this
            // signal.
            self.command.default_signals(&[libc::SIGXFSZ]);
        } else {
            self.command.inherit_sigpipe();
        }
        self.command.inherit_signal_mask();
        Ok(())
    }
}

const NO_SHELL: &str = "shell=True is not supported for asyncio: pass the program and its arguments as a list, \
    or [\"/bin/sh\", \"-c\", text] if you need a shell";
const NO_HOOK: &str = "preexec_fn is not supported for asyncio: it could run only in a fork, whose cost depends on the parent's \
    memory. Use cwd=, umask=, user=, rlimits=, nice=, pdeathsig= and the other options instead";

fn list<T>(value: &Bound<'_, PyAny>, convert: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>) -> PyResult<Vec<T>> {
    value.try_iter()?.map(|item| convert(&item?)).collect()
}

fn value_error(text: &'static str) -> PyErr {
    PyValueError::new_err(text)
}

/// Returns an error unless an option of this name exists. For options whose value changes nothing.
fn check_name(name: &str) -> PyResult<()> {
    const NAMES: &str = "cwd env pass_fds umask process_group user group extra_groups preexec_fn \
        rlimits nice cpus cgroup pdeathsig chroot no_new_privs fds";
    if NAMES.split(' ').any(|known| known == name) {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!("unexpected keyword argument '{name}'")))
}
