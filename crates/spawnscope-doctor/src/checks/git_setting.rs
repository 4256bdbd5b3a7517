//! A git setting and the file that contains it, which determines the command that removes it.

use std::path::Path;

pub(super) struct Setting {
    key: &'static str,
    pub(super) value: String,
    /// The level of configuration, such as `local`; unknown before git 2.26.
    scope: Option<String>,
    /// The source, such as `file:PATH`; unknown if git does not print it.
    origin: Option<String>,
}

impl Setting {
    /// Reads the effective setting, with `query` to run git; returns `None` if it is not set.
    pub(super) fn read<E>(
        key: &'static str,
        query: impl Fn(&[&str]) -> Result<Option<String>, E>,
    ) -> Result<Option<Setting>, E> {
        let parsed = |options: &[&str]| {
            let answer = query(&[&["config", "-z"][..], options, &["--get", key]].concat())?;
            Ok(answer.and_then(|answer| Setting::parse(key, &answer)))
        };
        let Some(plain) = parsed(&[])? else {
            return Ok(None);
        };
        for options in [&["--show-origin", "--show-scope"][..], &["--show-origin"]] {
            if let Some(setting) = parsed(options)? {
                return Ok(Some(setting));
            }
        }
        Ok(Some(plain))
    }

    /// Parses scope, origin and value, each terminated by a NUL. The scope, or scope and origin, may be missing.
    fn parse(key: &'static str, answer: &str) -> Option<Setting> {
        let mut parts = answer.trim_end_matches('\0').rsplit('\0');
        let value = parts.next().filter(|value| !value.is_empty())?.to_owned();
        let origin = parts.next().map(str::to_owned);
        let scope = parts.next().map(str::to_owned);
        Some(Setting { key, value, scope, origin })
    }

    /// Returns the command or edit that removes the setting.
    pub(super) fn removal(&self) -> String {
        let key = self.key;
        let file = self.origin.as_deref().map(|origin| origin.strip_prefix("file:"));
        // An included file has another name than the main file of its scope, and needs `--file`.
        let option = match (self.scope.as_deref(), file) {
            (Some("local") | None, None | Some(Some(".git/config"))) => String::new(),
            (Some("worktree"), Some(Some(file))) if has_name(file, "config.worktree") => "--worktree ".to_owned(),
            (Some("global"), Some(Some(file))) if has_name(file, ".gitconfig") => "--global ".to_owned(),
            (Some("system"), Some(Some(file))) if has_name(file, "gitconfig") => "--system ".to_owned(),
            (_, Some(Some(file))) => format!("--file {} ", quoted(file)),
            _ => return format!("{key} is set by GIT_CONFIG_ variables; remove it there"),
        };
        format!("`git config {option}--unset-all {key}`")
    }
}

fn has_name(file: &str, name: &str) -> bool {
    Path::new(file).file_name().is_some_and(|found| found == name)
}

/// Quotes a file name for a shell, if necessary.
fn quoted(file: &str) -> String {
    let is_plain = file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    if is_plain { file.to_owned() } else { format!("'{}'", file.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_removal_command_names_the_file_of_the_setting() {
        for (answer, option) in [
            ("local\0file:.git/config\0monitor\0", ""),
            ("file:.git/config\0monitor\0", ""),
            ("monitor\0", ""),
            ("global\0file:/home/me/.gitconfig\0monitor\0", "--global "),
            ("system\0file:/etc/gitconfig\0monitor\0", "--system "),
            ("worktree\0file:/r/.git/worktrees/a/config.worktree\0monitor\0", "--worktree "),
            ("global\0file:/home/me/.git work\0m\0", "--file '/home/me/.git work' "),
        ] {
            let removal = Setting::parse("core.x", answer).unwrap().removal();
            assert_eq!(removal, format!("`git config {option}--unset-all core.x`"), "{answer:?}");
        }
        let other = Setting::parse("core.x", "command\0command line:\0monitor\0").unwrap();
        assert!(other.removal().contains("GIT_CONFIG_ variables"));
    }
}
