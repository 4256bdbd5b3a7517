//! A child process that is asked by lines on its standard input, and answers each with a line on
//! its standard output.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::LabError;

pub struct AskedChild {
    pub child: Child,
    input: ChildStdin,
    pub output: BufReader<ChildStdout>,
}

impl AskedChild {
    /// `what` names the child in errors.
    pub fn start(command: &mut Command, what: &str) -> Result<AskedChild, LabError> {
        let mut child = command
            // Ctrl-C must only reach bench, which ends its children in an orderly way.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(LabError::doing(format!("start {what}")))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok(AskedChild { child, input, output: BufReader::new(output) }),
            _ => Err(LabError::Invalid(format!("no pipes to {what}"))),
        }
    }

    pub fn ask(&mut self, line: &str) -> io::Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes())
    }

    /// Waits for an answer; the line is empty if the child has ended.
    pub fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map(|_| line)
    }

    /// Closes the child's input, so that it ends.
    pub fn close(self) -> Child {
        self.child
    }
}
