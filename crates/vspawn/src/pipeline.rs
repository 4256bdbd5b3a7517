//! Several commands, each reading the output of the previous one: `a | b | c`, with the status of
//! each.

use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Output};
use std::sync::Arc;

use crate::command::Command;
use crate::error::Error;
use crate::process::Child;
use crate::stdio::{ChildStdin, ChildStdout, Pipe, Source};

/// A sequence of commands. The first command sets its own standard input, and the last one its
/// standard output.
///
/// ```
/// use vspawn::{Command, Pipeline};
///
/// let mut words = Command::new("printf");
/// words.arg("two\\none\\n");
/// let (statuses, output) = Pipeline::new().then(words).then(Command::new("sort")).output()?;
/// assert!(statuses.iter().all(|status| status.success()));
/// assert_eq!(output, b"one\ntwo\n");
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Pipeline {
    commands: Vec<Command>,
}

/// A running pipeline.
///
/// ```
/// use std::io::Write;
/// use vspawn::{Command, Pipeline, Stdio};
///
/// let mut first = Command::new("cat");
/// first.stdin(Stdio::piped());
/// let mut last = Command::new("grep");
/// last.args(["-q", "needle"]);
/// let mut running = Pipeline::new().then(first).then(last).spawn()?;
/// running.take_stdin().unwrap().write_all(b"a needle\n").unwrap();
/// assert!(running.wait()?.iter().all(|status| status.success()));
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
pub struct RunningPipeline {
    /// The children, in the order of the commands.
    pub children: Vec<Child>,
}

/// What the commands of a pipeline have printed, and how they ended.
///
/// ```
/// use vspawn::{Command, Pipeline};
///
/// let done = Pipeline::new().then(Command::new("true")).then(Command::new("pwd")).output_with_stderr()?;
/// assert!(done.statuses.iter().all(|status| status.success()));
/// assert!(done.stdout.starts_with(b"/") && done.stderr.is_empty());
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct PipelineOutput {
    /// The status of each command.
    pub statuses: Vec<ExitStatus>,
    /// The standard output of the last command.
    pub stdout: Vec<u8>,
    /// The standard error of all commands.
    pub stderr: Vec<u8>,
}

impl Pipeline {
    /// Creates an empty pipeline.
    ///
    /// ```
    /// assert_eq!(vspawn::Pipeline::new().spawn().unwrap_err().raw_os_error(), libc::EINVAL);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn new() -> Pipeline {
        Pipeline::default()
    }

    /// Adds a command, which reads the output of the previous one.
    ///
    /// ```
    /// use vspawn::{Command, Pipeline};
    ///
    /// let first_lines = Pipeline::new().then(Command::new("yes")).then(Command::new("head"));
    /// assert_eq!(first_lines.output()?.1.len(), 20);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn then(mut self, command: Command) -> Pipeline {
        self.commands.push(command);
        self
    }

    /// Starts all commands.
    ///
    /// # Errors
    /// The same as [`Command::spawn`]; commands already started have then been killed and waited
    /// for. `EINVAL` for an empty pipeline.
    ///
    /// ```
    /// use vspawn::{Command, Pipeline};
    ///
    /// let mut running = Pipeline::new().then(Command::new("true")).then(Command::new("false")).spawn()?;
    /// let codes: Vec<_> = running.wait()?.iter().map(|status| status.code()).collect();
    /// assert_eq!(codes, [Some(0), Some(1)]);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn spawn(&self) -> Result<RunningPipeline, Error> {
        if self.commands.is_empty() {
            return Err(Error::invalid("run an empty pipeline"));
        }
        let mut running = RunningPipeline { children: Vec::new() };
        let mut input: Option<OwnedFd> = None;
        for (index, command) in self.commands.iter().enumerate() {
            let mut command = command.clone();
            if let Some(input) = input.take() {
                command.set_source(0, Source::Fd(Arc::new(input)));
            }
            let started = connect(&mut command, index + 1 < self.commands.len()).and_then(|next| {
                input = next;
                command.spawn()
            });
            match started {
                Ok(child) => running.children.push(child),
                Err(error) => {
                    running.kill_and_wait();
                    return Err(error);
                }
            }
        }
        Ok(running)
    }

    /// Starts all commands, reads the last one's output to its end, and waits for each.
    ///
    /// # Errors
    /// The same as [`Pipeline::spawn`] and [`Child::wait`], and
    /// [`Stage::Communicate`](crate::Stage::Communicate).
    ///
    /// ```
    /// use vspawn::{Command, Pipeline};
    ///
    /// let mut first = Command::new("echo");
    /// first.arg("text");
    /// assert_eq!(Pipeline::new().then(first).then(Command::new("cat")).output()?.1, b"text\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn output(self) -> Result<(Vec<ExitStatus>, Vec<u8>), Error> {
        let (statuses, output) = self.run(None)?;
        Ok((statuses, output.stdout))
    }

    /// Like [`Pipeline::output`], but also reads what all commands write to standard error, unless
    /// a command sets its own. (With [`Stdio::stdout`](crate::Stdio::stdout) as its standard error,
    /// a command writes it to the next command.)
    ///
    /// # Errors
    /// The same as [`Pipeline::output`].
    ///
    /// ```
    /// use vspawn::{Command, Pipeline};
    ///
    /// let mut first = Command::new("sh");
    /// first.args(["-c", "echo first >&2; echo a"]);
    /// let mut last = Command::new("sh");
    /// last.args(["-c", "cat; echo last >&2"]);
    /// let done = Pipeline::new().then(first).then(last).output_with_stderr()?;
    /// assert_eq!((&done.stdout[..], &done.stderr[..]), (&b"a\n"[..], &b"first\nlast\n"[..]));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn output_with_stderr(mut self) -> Result<PipelineOutput, Error> {
        let errors = Pipe::new()?;
        let writer = Arc::new(errors.writer);
        for command in &mut self.commands {
            command.fds.entry(2).or_insert_with(|| Source::Fd(Arc::clone(&writer)));
        }
        // The commands have the other writers, which `run` drops.
        drop(writer);
        let (statuses, output) = self.run(Some(errors.reader))?;
        Ok(PipelineOutput { statuses, stdout: output.stdout, stderr: output.stderr })
    }

    /// Runs the commands, and reads the last one's output and `errors` at the same time.
    fn run(mut self, errors: Option<OwnedFd>) -> Result<(Vec<ExitStatus>, Output), Error> {
        if let Some(last) = self.commands.last_mut() {
            last.set_source(1, Source::Piped);
        }
        let mut running = self.spawn()?;
        drop(self);
        drop(running.take_stdin());
        let Some(mut last) = running.children.pop() else {
            return Err(Error::invalid("run an empty pipeline"));
        };
        if let Some(errors) = errors {
            last.stderr = Some(errors.into());
        }
        let output = last.wait_with_output().inspect_err(|_| running.kill_and_wait())?;
        let mut statuses = running.wait()?;
        statuses.push(output.status);
        Ok((statuses, output))
    }
}

/// Connects a command's output to the next one, and returns the next one's input.
fn connect(command: &mut Command, has_next: bool) -> Result<Option<OwnedFd>, Error> {
    if !has_next {
        return Ok(None);
    }
    let pipe = Pipe::new()?;
    command.set_source(1, Source::Fd(Arc::new(pipe.writer)));
    Ok(Some(pipe.reader))
}

impl RunningPipeline {
    /// Takes the first command's standard input, if it is piped.
    ///
    /// ```
    /// use vspawn::{Command, Pipeline, Stdio};
    ///
    /// let mut first = Command::new("cat");
    /// first.stdin(Stdio::piped());
    /// let mut running = Pipeline::new().then(first).spawn()?;
    /// drop(running.take_stdin()); // the end of its input
    /// assert!(running.wait()?[0].success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.children.first_mut().and_then(|child| child.stdin.take())
    }

    /// Takes the last command's standard output, if it is piped.
    ///
    /// ```
    /// use std::io::Read;
    /// use vspawn::{Command, Pipeline, Stdio};
    ///
    /// let mut last = Command::new("echo");
    /// last.arg("text").stdout(Stdio::piped());
    /// let mut running = Pipeline::new().then(Command::new("true")).then(last).spawn()?;
    /// let mut text = String::new();
    /// running.take_stdout().unwrap().read_to_string(&mut text).unwrap();
    /// assert_eq!(text, "text\n");
    /// running.wait()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.children.last_mut().and_then(|child| child.stdout.take())
    }

    /// Closes the first command's standard input and waits for all commands, in order.
    ///
    /// # Errors
    /// The first error of [`Child::wait`]. All commands have been waited for in this case, too.
    ///
    /// ```
    /// use vspawn::{Command, Pipeline};
    ///
    /// let mut running = Pipeline::new().then(Command::new("false")).then(Command::new("true")).spawn()?;
    /// assert!(!running.wait()?[0].success()); // a shell shows this with `pipefail` only
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn wait(&mut self) -> Result<Vec<ExitStatus>, Error> {
        let statuses: Vec<_> = self.children.iter_mut().map(Child::wait).collect();
        statuses.into_iter().collect()
    }

    /// Kills all commands and waits for them.
    fn kill_and_wait(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
