//! Getters of a command's settings, named as in [`std::process::Command`].

use std::collections::btree_map;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::command::Command;

impl Command {
    /// Returns the program, as passed to [`Command::new`].
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("ls").get_program(), "ls");
    /// ```
    #[must_use]
    pub fn get_program(&self) -> &OsStr {
        &self.program
    }

    /// Returns the arguments, without argv\[0\].
    ///
    /// ```
    /// let mut command = vspawn::Command::new("ls");
    /// assert!(command.args(["-l", "/"]).get_args().eq(["-l", "/"]));
    /// ```
    #[must_use]
    pub fn get_args(&self) -> CommandArgs<'_> {
        CommandArgs(self.args.iter())
    }

    /// Returns the changes to the inherited environment, sorted by name. A value of `None` means
    /// that the variable is removed.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("ls");
    /// command.env("B", "2").env_remove("A");
    /// let envs: Vec<_> = command.get_envs().collect();
    /// assert_eq!(envs, [("A".as_ref(), None), ("B".as_ref(), Some("2".as_ref()))]);
    /// ```
    #[must_use]
    pub fn get_envs(&self) -> CommandEnvs<'_> {
        CommandEnvs(self.env.iter())
    }

    /// Returns whether the environment is cleared ([`Command::env_clear`]), so that the child
    /// inherits no variable.
    ///
    /// ```
    /// assert!(vspawn::Command::new("ls").env_clear().get_env_clear());
    /// ```
    #[must_use]
    pub fn get_env_clear(&self) -> bool {
        self.clear_env
    }

    /// Returns the working directory, if one was set.
    ///
    /// ```
    /// let mut command = vspawn::Command::new("ls");
    /// assert_eq!(command.get_current_dir(), None);
    /// assert_eq!(command.current_dir("/").get_current_dir(), Some("/".as_ref()));
    /// ```
    #[must_use]
    pub fn get_current_dir(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }
}

/// An iterator over the arguments of a command. See [`Command::get_args`].
///
/// ```
/// let mut command = vspawn::Command::new("ls");
/// assert_eq!(command.args(["-l", "/"]).get_args().len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct CommandArgs<'a>(std::slice::Iter<'a, OsString>);

/// An iterator over a command's changes to the environment. See [`Command::get_envs`].
///
/// ```
/// let mut command = vspawn::Command::new("ls");
/// assert!(command.env("LC_ALL", "C").get_envs().eq([("LC_ALL".as_ref(), Some("C".as_ref()))]));
/// ```
#[derive(Clone, Debug)]
pub struct CommandEnvs<'a>(btree_map::Iter<'a, OsString, Option<OsString>>);

impl<'a> Iterator for CommandArgs<'a> {
    type Item = &'a OsStr;

    fn next(&mut self) -> Option<&'a OsStr> {
        self.0.next().map(OsString::as_os_str)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for CommandArgs<'_> {}

impl<'a> Iterator for CommandEnvs<'a> {
    type Item = (&'a OsStr, Option<&'a OsStr>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        Some((key, value.as_deref()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for CommandEnvs<'_> {}
