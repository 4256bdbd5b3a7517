//! Converts the arguments of `run` and `Popen` to a command.

use std::ffi::OsString;

use pyo3::exceptions::{PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use vspawn::Command;

use crate::failure::NamedObjects;
use crate::values::{GROUPS, Stream, USERS, descriptor_number, fs_string, id, stdio, supplementary_group, words};

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
        let [stdin, stdout, stderr] = streams;
        request
            .command
            .stdin(stdio(stdin, Stream::Input)?)
            .stdout(stdio(stdout, Stream::Output)?)
            .stderr(stdio(stderr, Stream::Error)?);
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
            "pass_fds" => {
                for fd in value.try_iter()? {
                    combined.pass_fds.push(descriptor_number(&fd?)?);
                }
            }
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
            "extra_groups" => {
                let groups = value.try_iter()?.map(|group| supplementary_group(&group?));
                self.command.groups(&groups.collect::<PyResult<Vec<u32>>>()?);
            }
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
        self.command.blocked_signals(&blocked_signals());
        Ok(())
    }
}

const NO_SHELL: &str = "shell=True is not supported for asyncio: pass the program and its arguments as a list, \
    or [\"/bin/sh\", \"-c\", text] if you need a shell";
const NO_HOOK: &str = "preexec_fn is not supported for asyncio: it could run only in a fork, whose cost depends on the parent's \
    memory. Use cwd=, umask=, user=, group=, extra_groups=, process_group=, start_new_session=, pass_fds= instead";

fn value_error(text: &'static str) -> PyErr {
    PyValueError::new_err(text)
}

/// Returns an error unless an option of this name exists. For options whose value changes nothing.
fn check_name(name: &str) -> PyResult<()> {
    const NAMES: [&str; 9] =
        ["cwd", "env", "pass_fds", "umask", "process_group", "user", "group", "extra_groups", "preexec_fn"];
    if NAMES.contains(&name) {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!("unexpected keyword argument '{name}'")))
}

/// Returns the signals that the calling thread blocks. As with `subprocess`, the child blocks them,
/// too.
fn blocked_signals() -> Vec<i32> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: a NULL new set changes nothing; the old one is written whole.
    let set = unsafe {
        if libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr()) != 0 {
            return Vec::new();
        }
        set.assume_init()
    };
    // SAFETY: the set is initialised, and the numbers are those of signals.
    (1..=64).filter(|signal| unsafe { libc::sigismember(&raw const set, *signal) } == 1).collect()
}
