//! Programs that scripts ask about one item at a time, and how one launch can answer for all items.

use crate::model::launch::Exec;
use crate::patterns::subcommands::subcommand_of;

/// A program, a subcommand (empty if any arguments match), and how to ask about all items at once.
type Row = (&'static [u8], &'static [u8], &'static str);

const TABLE: [Row; 55] = [
    (b"apt-cache", b"policy", "apt-cache policy A B C ..."),
    (b"apt-cache", b"show", "apt-cache show A B C ..."),
    (b"brew", b"info", "brew info --json A B C ..."),
    (b"docker", b"exec", "docker exec CONTAINER sh -s, with all commands on its standard input"),
    (b"docker", b"inspect", "docker inspect A B C ..., or docker inspect --format=FORMAT $(docker ps -q)"),
    (b"docker", b"rm", "docker rm A B C ..."),
    (b"dpkg", b"-L", "dpkg -L A B C ..."),
    (b"dpkg", b"-S", "dpkg -S A B C ..."),
    (b"dpkg", b"-s", "dpkg-query -W -f='${Package} ${Status}\\n', once for all packages"),
    (b"dpkg-query", b"", "dpkg-query -W -f=FORMAT, once for all packages"),
    (b"exiftool", b"", "exiftool FILES..., or exiftool -stay_open True -@ -"),
    (b"file", b"", "file -N -- FILES..., or file -f LIST"),
    (b"getent", b"", "getent DATABASE A B C ..."),
    (b"git", b"add", "git add --pathspec-from-file=LIST"),
    (b"git", b"branch", "git for-each-ref --format=... refs/heads"),
    (b"git", b"cat-file", "git cat-file --batch, with all objects on its standard input"),
    (b"git", b"check-attr", "git check-attr --stdin ATTRIBUTE"),
    (b"git", b"check-ignore", "git check-ignore --stdin"),
    (b"git", b"checkout", "git checkout --pathspec-from-file=LIST"),
    (b"git", b"config", "git config --list -z, once, and look the keys up in it"),
    (b"git", b"describe", "git describe A B C ..., or git for-each-ref --format='%(describe)'"),
    (b"git", b"diff", "git diff --name-status A B (or --raw), once for all paths"),
    (b"git", b"diff-tree", "git diff-tree --stdin"),
    (b"git", b"for-each-ref", "git for-each-ref --format=... refs/heads refs/tags, once"),
    (b"git", b"hash-object", "git hash-object --stdin-paths"),
    (b"git", b"log", "git log --format='%H %ct' --name-only, once; its output has the commits of every path"),
    (b"git", b"ls-files", "git ls-files -s, once for all paths"),
    (b"git", b"ls-tree", "git ls-tree -r TREE, once"),
    (b"git", b"merge-base", "git for-each-ref --merged=COMMIT (or --contains), once for all branches"),
    (b"git", b"mv", "git mv A B C ... DIRECTORY"),
    (b"git", b"name-rev", "git name-rev --annotate-stdin"),
    (b"git", b"rev-list", "git rev-list --stdin; to count: git for-each-ref --format='%(ahead-behind:BASE)'"),
    (b"git", b"rev-parse", "git rev-parse A B C ..., or git cat-file --batch-check on standard input"),
    (b"git", b"rm", "git rm --pathspec-from-file=LIST"),
    (b"git", b"show", "git cat-file --batch for files (COMMIT:PATH), git log --stdin for commits"),
    (b"git", b"show-ref", "git for-each-ref --format='%(objectname) %(refname)', once"),
    (b"git", b"status", "git status --porcelain, once for the whole tree"),
    (b"git", b"tag", "git for-each-ref --format=... refs/tags; git tag -d A B C ..."),
    (b"git", b"update-ref", "git update-ref --stdin"),
    (b"jq", b"", "jq -n 'inputs | ...' FILES..., or one filter that returns all values"),
    (b"kubectl", b"get", "kubectl get KIND -o json, once, and pick from it"),
    (b"md5sum", b"", "md5sum -- FILES..."),
    (b"nm", b"", "nm -A FILES..."),
    (b"npm", b"view", "npm outdated --json, or one request to the registry's bulk interface"),
    (b"objdump", b"", "objdump ... FILES..."),
    (b"pip", b"show", "pip show A B C ..., or pip list --format=json"),
    (b"pip3", b"show", "pip3 show A B C ..., or pip3 list --format=json"),
    (b"podman", b"inspect", "podman inspect A B C ..."),
    (b"readelf", b"", "readelf ... FILES..."),
    (b"rpm", b"", "rpm -q --qf FORMAT A B C ..., or rpm -qa"),
    (b"sha1sum", b"", "sha1sum -- FILES..."),
    (b"sha256sum", b"", "sha256sum -- FILES..."),
    (b"stat", b"", "stat -c FORMAT -- FILES..., or find -printf"),
    (b"systemctl", b"is-active", "systemctl is-active A B C ..."),
    (b"systemctl", b"show", "systemctl show -p PROPERTIES A B C ..."),
];

/// Returns how one launch of this program can answer for all items, and the subcommand if that
/// depends on it. `None` if no row matches.
pub(super) fn batch_form<'a>(program: &[u8], exec: &Exec<'a>) -> Option<(&'static str, &'a [u8])> {
    let word = subcommand_of(exec).or_else(|| exec.arguments().nth(1)).unwrap_or_default();
    let rows = TABLE.iter().filter(|(name, _, _)| *name == program);
    let mut fitting = rows.filter(|(_, subcommand, _)| subcommand.is_empty() || *subcommand == word);
    let (_, subcommand, fix) = fitting.next()?;
    Some((fix, if subcommand.is_empty() { b"" } else { word }))
}
