//! Programs with subcommands (`git log`, `docker run`, `python3 -m pip`): finds the subcommand in
//! their arguments.

use crate::model::launch::{Exec, base_name, is_version_of};

/// A program with subcommands, and the options before the subcommand whose value is the next
/// argument.
type Program = (&'static [u8], &'static [&'static [u8]]);

const PROGRAMS: [Program; 57] = [
    (b"adb", &[b"-s", b"-t", b"-H", b"-P"]),
    (b"apt", &[b"-o", b"-c", b"-t"]),
    (b"apt-get", &[b"-o", b"-c", b"-t"]),
    (b"aws", &[b"--profile", b"--region", b"--output"]),
    (b"az", &[]),
    (b"bazel", &[]),
    (b"brew", &[]),
    (b"btrfs", &[]),
    (b"bundle", &[]),
    (b"busctl", &[b"-H", b"-M"]),
    (b"busybox", &[]),
    (b"cargo", &[b"-C", b"-Z", b"--color", b"--config"]),
    (b"composer", &[b"-d"]),
    (b"conda", &[]),
    (b"docker", &[b"-H", b"-c", b"-l", b"--host", b"--context", b"--config", b"--log-level"]),
    (b"dotnet", &[]),
    (b"flatpak", &[]),
    (b"gcloud", &[b"--project"]),
    (b"gem", &[]),
    (b"gh", &[b"-R", b"--repo"]),
    (b"git", &[b"-C", b"-c", b"--git-dir", b"--work-tree", b"--namespace", b"--config-env"]),
    (b"go", &[b"-C"]),
    (b"guix", &[]),
    (b"helm", &[b"-n", b"--namespace", b"--kube-context", b"--kubeconfig"]),
    (b"hg", &[b"-R", b"--repository", b"--cwd", b"--config"]),
    (b"ip", &[b"-n", b"-netns", b"-f", b"-family"]),
    (b"jj", &[b"-R", b"--repository"]),
    (b"kubectl", &[b"-n", b"-s", b"--namespace", b"--context", b"--kubeconfig", b"--cluster", b"--user"]),
    (b"loginctl", &[b"-H", b"-M", b"-p"]),
    (b"meson", &[]),
    (b"nix", &[]),
    (b"nmcli", &[b"-f", b"-m", b"-g"]),
    (b"npm", &[b"-C", b"--prefix", b"-w", b"--loglevel"]),
    (b"openssl", &[]),
    (b"perf", &[]),
    (b"pip", &[]),
    (b"pip3", &[]),
    (b"pnpm", &[b"-C", b"--dir", b"--filter"]),
    (b"podman", &[b"-c", b"--connection", b"--url", b"--root", b"--log-level"]),
    (b"poetry", &[b"-C", b"-P"]),
    (b"resolvectl", &[]),
    (b"rustup", &[]),
    (b"snap", &[]),
    (b"svn", &[]),
    (b"systemctl", &[b"-H", b"-M", b"-n", b"-o", b"-p", b"-t"]),
    (b"tc", &[b"-n"]),
    (b"terraform", &[]),
    (b"timedatectl", &[b"-H", b"-M"]),
    (b"tmux", &[b"-L", b"-S", b"-f", b"-c"]),
    (b"udevadm", &[]),
    (b"uv", &[b"--directory", b"--project"]),
    (b"vault", &[]),
    (b"virsh", &[b"-c", b"--connect"]),
    (b"yarn", &[b"--cwd"]),
    (b"zfs", &[]),
    (b"zpool", &[]),
    (b"zypper", &[]),
];
/// The option of Python that names a module.
const MODULE: &[u8] = b"-m";

/// Returns the subcommand of an exec: the first argument that is not an option, or the first option
/// if there are only options. `None` for programs without subcommands.
pub(crate) fn subcommand_of<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let program = base_name(exec.path());
    if is_version_of(program, b"python") {
        let mut options = exec.arguments().skip(1).take_while(|argument| argument.starts_with(b"-"));
        options.find(|option| *option == MODULE)?;
        return exec.arguments().skip_while(|argument| *argument != MODULE).nth(1);
    }
    let known = PROGRAMS.binary_search_by_key(&program, |(name, _)| name).ok()?;
    let (_, with_value) = PROGRAMS[known];
    let mut arguments = exec.arguments().skip(1);
    let mut first = None;
    while let Some(argument) = arguments.next() {
        // Programs that rustup installs accept a toolchain such as `+nightly` first.
        let is_option = argument.starts_with(b"-") || argument.starts_with(b"+");
        if !is_option {
            return Some(argument);
        }
        first.get_or_insert(argument);
        if with_value.contains(&argument) {
            arguments.next();
        }
    }
    first
}

/// Formats a program with its subcommand, as it is typed.
pub(crate) fn label(program: &[u8], subcommand: &[u8]) -> Vec<u8> {
    let option: &[u8] = if is_version_of(program, b"python") { b" -m " } else { b" " };
    [program, option, subcommand].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_sorted_for_the_search() {
        assert!(PROGRAMS.is_sorted_by_key(|(name, _)| *name));
    }
}
