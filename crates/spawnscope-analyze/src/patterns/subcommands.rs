//! Programs with subcommands (`git log`, `docker run`, `python3 -m pip`): finds the subcommand in
//! their arguments.

use super::words::Words;
use crate::model::launch::{Exec, base_name, is_version_of};

/// Programs with subcommands, and without options before the subcommand whose value is the next
/// argument.
const WITHOUT_VALUES: Words = Words(
    "az bazel brew btrfs bundle busybox conda dotnet flatpak gem guix meson nix openssl perf pip pip3 resolvectl
     rustup snap svn terraform udevadm vault zfs zpool zypper",
);
/// The others, and these options.
const WITH_VALUES: [(&str, Words); 30] = [
    ("adb", Words("-s -t -H -P")),
    ("apt", Words("-o -c -t")),
    ("apt-get", Words("-o -c -t")),
    ("aws", Words("--profile --region --output")),
    ("busctl", Words("-H -M")),
    ("cargo", Words("-C -Z --color --config")),
    ("composer", Words("-d")),
    ("docker", Words("-H -c -l --host --context --config --log-level")),
    ("gcloud", Words("--project")),
    ("gh", Words("-R --repo")),
    ("git", Words("-C -c --git-dir --work-tree --namespace --config-env")),
    ("go", Words("-C")),
    ("helm", Words("-n --namespace --kube-context --kubeconfig")),
    ("hg", Words("-R --repository --cwd --config")),
    ("ip", Words("-n -netns -f -family")),
    ("jj", Words("-R --repository")),
    ("kubectl", Words("-n -s --namespace --context --kubeconfig --cluster --user")),
    ("loginctl", Words("-H -M -p")),
    ("nmcli", Words("-f -m -g")),
    ("npm", Words("-C --prefix -w --loglevel")),
    ("pnpm", Words("-C --dir --filter")),
    ("podman", Words("-c --connection --url --root --log-level")),
    ("poetry", Words("-C -P")),
    ("systemctl", Words("-H -M -n -o -p -t")),
    ("tc", Words("-n")),
    ("timedatectl", Words("-H -M")),
    ("tmux", Words("-L -S -f -c")),
    ("uv", Words("--directory --project")),
    ("virsh", Words("-c --connect")),
    ("yarn", Words("--cwd")),
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
    let with_value = match WITH_VALUES.iter().find(|(name, _)| name.as_bytes() == program) {
        Some((_, options)) => *options,
        None => WITHOUT_VALUES.contains(program).then_some(Words(""))?,
    };
    let mut arguments = exec.arguments().skip(1);
    let mut first = None;
    while let Some(argument) = arguments.next() {
        // Programs that rustup installs accept a toolchain such as `+nightly` first.
        let is_option = argument.starts_with(b"-") || argument.starts_with(b"+");
        if !is_option {
            return Some(argument);
        }
        first.get_or_insert(argument);
        if with_value.contains(argument) {
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
