//! A git setting and the file it comes from, because it can only be removed from that file.

use std::path::Path;

pub(super) struct Setting {
    key: &'static str,
    pub(super) value: String,
    /// The level of configuration, such as `local`; unknown before git 2.26.
    scope: Option<String>,
    /// `file:PATH`, or another kind of source.
    origin: Option<String>,
}

impl Setting {
    /// The effective setting, queried from git by `ask`; `None` if it is not set.
    pub(super) fn of<E>(
        key: &'static str,
        ask: impl Fn(&[&str]) -> Result<Option<String>, E>,
    ) -> Result<Option<Setting>, E> {
        let parsed = |options: &[&str]| {
            let answer = ask(&[&["config", "-z"][..], options, &["--get", key]].concat())?;
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

    /// Parses scope, origin and value, each ended by a NUL. Older versions of git omit the first ones.
    fn parse(key: &'static str, answer: &str) -> Option<Setting> {
        let mut parts = answer.trim_end_matches('\0').rsplit('\0');
        let value = parts.next().filter(|value| !value.is_empty())?.to_owned();
        let origin = parts.next().map(str::to_owned);
        let scope = parts.next().map(str::to_owned);
        Some(Setting {
            key,
            value,
            scope,
            origin,
        })
    }

    /// The command or edit that removes it.
    pub(super) fn removal(&self) -> String {
        let key = self.key;
        let unset = |of: &str| format!("`git config {of}--unset-all {key}`");
        let file = self.origin.as_deref().map(|origin| origin.strip_prefix("file:"));
        let name = |file: &str| {
            Path::new(file)
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        // Included files have other names, and need `--file`.
        match (self.scope.as_deref(), file) {
            (Some("local") | None, None | Some(Some(".git/config"))) => unset(""),
            (Some("worktree"), Some(Some(file))) if name(file).as_deref() == Some("config.worktree") => {
                unset("--worktree ")
            }
            (Some("global"), Some(Some(file))) if name(file).as_deref() == Some(".gitconfig") => unset("--global "),
            (Some("system"), Some(Some(file))) if name(file).as_deref() == Some("gitconfig") => unset("--system "),
            (_, Some(Some(file))) => unset(&format!("--file {} ", quoted(file))),
            _ => format!("{key} is set by GIT_CONFIG_ variables; remove it there"),
        }
    }
}

/// Quotes for a shell.
fn quoted(file: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if file.bytes().all(is_plain) {
        file.to_owned()
    } else {
        format!("'{}'", file.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_removed_where_it_comes_from() {
        let removal = |answer: &str| Setting::parse("core.x", answer).unwrap().removal();
        let unset = |of: &str| format!("`git config {of}--unset-all core.x`");
        assert_eq!(removal("local\0file:.git/config\0monitor\0"), unset(""));
        assert_eq!(removal("file:.git/config\0monitor\0"), unset(""));
        assert_eq!(removal("monitor\0"), unset(""));
        assert_eq!(
            removal("global\0file:/home/me/.gitconfig\0monitor\0"),
            unset("--global ")
        );
        assert_eq!(removal("system\0file:/etc/gitconfig\0monitor\0"), unset("--system "));
        let worktree = "worktree\0file:/r/.git/worktrees/a/config.worktree\0monitor\0";
        assert_eq!(removal(worktree), unset("--worktree "));
        assert_eq!(
            removal("global\0file:/home/me/.git work\0m\0"),
            unset("--file '/home/me/.git work' ")
        );
        assert!(removal("command\0command line:\0monitor\0").contains("GIT_CONFIG_ variables"));
    }
}
