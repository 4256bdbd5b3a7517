#!/usr/bin/env python3
"""Records five commands of different kinds and writes the page of each to docs/gallery, which is not in git. With --write, the
first screens in docs/gallery.md are renewed, too. The sentences about them there are written by hand: read both after that.
Needs root, since only eBPF records everything, and Debian. --install installs what the commands need.
Usage: gallery.py [--binary SPAWNSCOPE] [--install] [--write] [NAME...]"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/gallery"
TEXT = ROOT / "docs/gallery.md"
# A usual PATH. The directories of programs that are often elsewhere are added.
PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
TOOLCHAIN = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"}
# Up to this size, a page opens at once, and a browser loads it over a slow line.
LARGE = 300_000


def configure(work):
    """GNU hello's ./configure, as it is in Debian's source package."""
    subprocess.run([ROOT / "scripts/suite-source.sh", "bookworm", work, "hello"], check=True)
    subprocess.run(["tar", "-xf", next(work.glob("hello_*.orig.tar.gz"))], cwd=work, check=True)
    return ["./configure"], next(path for path in work.glob("hello-*") if path.is_dir())


def cargo(work):
    """A cargo build of four crates, of which three have build scripts."""
    subprocess.run([ROOT / "examples/real-input/crates.sh", work / "workspace"], check=True)
    return ["cargo", "build", "--offline"], work / "workspace"


def magit(work):
    """Magit's status view of a repository."""
    repository(work / "repository")
    shutil.copy(ROOT / "examples/real-input/magit-status.el", work)
    return ["emacs", "--batch", "-l", "magit-status.el"], work


def shell(work):
    """The start of an interactive bash."""
    shutil.copy(ROOT / "examples/gallery/bashrc", work / ".bashrc")
    return ["bash", "-ic", "exit"], work


def job(work):
    """A job of continuous integration, on this repository."""
    shutil.copy(ROOT / "examples/gallery/ci-job.sh", work)
    subprocess.run(["git", "clone", "-q", "--bare", ROOT, work / "project.git"], check=True)
    return ["./ci-job.sh", "project.git"], work


# These run once before they are recorded: the first run fills caches in the home directory.
WARMED = {"magit", "shell"}
EXAMPLES = {"configure": configure, "cargo": cargo, "magit": magit, "shell": shell, "ci-job": job}


def repository(directory):
    """Makes a repository with a history, a staged and an unstaged change."""
    subprocess.run(["git", "init", "-q", "-b", "main", directory], check=True)
    git = ["git", "-C", directory, "-c", "user.name=example", "-c", "user.email=example@localhost", "-c", "commit.gpgsign=false"]
    for number in range(20):
        (directory / f"file{number % 5}").write_text(f"{number}\n" * 20)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", f"change {number}"], check=True)
    for number in range(2):
        subprocess.run([*git, "add", "."], check=True)
        (directory / f"file{number}").write_text("changed\n")


def main():
    options = parse()
    if options.install:
        subprocess.run([ROOT / "scripts/install-dependencies.sh", "gallery"], check=True)
    PAGES.mkdir(exist_ok=True)
    for name in options.names or EXAMPLES:
        with tempfile.TemporaryDirectory(prefix="gallery.") as work:
            screen = record(options.binary, name, Path(work))
        size = (PAGES / f"{name}.html").stat().st_size
        print(f"{name}: {size:,} bytes{', too large for git' if size > LARGE else ''}\n{screen}")
        if options.write:
            write(name, screen)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/spawnscope", help="the spawnscope to record with")
    parser.add_argument("--install", action="store_true", help="install the packages that the commands need")
    parser.add_argument("--write", action="store_true", help="renew the screens in docs/gallery.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to record: {', '.join(EXAMPLES)}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(EXAMPLES):
        parser.error(f"no example is called {', '.join(sorted(unknown))}")
    options.binary = options.binary.resolve()
    return options


def record(binary, name, work):
    """Records a command, writes its page, and returns the first screen of its report."""
    command, directory = EXAMPLES[name](work)
    # Without the user's variables, the recording does not depend on them.
    elsewhere = [str(Path(found).parent) for found in map(shutil.which, ("cargo", "go")) if found]
    homes = {name: os.environ.get(name, str(Path.home() / default)) for name, default in TOOLCHAIN.items()}
    environment = {"PATH": ":".join(dict.fromkeys(PATH + elsewhere)), "HOME": str(work), "LANG": "C.UTF-8", "REPO": str(work / "repository"), **homes}

    def run(*words):
        finished = subprocess.run(words, cwd=directory, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if finished.returncode:
            sys.exit(f"{name}: {words[0]} ended with {finished.returncode}\n{finished.stdout}{finished.stderr}")
        return finished.stdout

    if name in WARMED:
        run(*command)
    run(binary, "record", "--quiet", "--collector", "ebpf", "--", *command)
    run(binary, "html", "-o", PAGES / f"{name}.html")
    # Pages are private, because arguments may be. These are to be published.
    (PAGES / f"{name}.html").chmod(0o644)
    return run(binary, "report").strip("\n")


def write(name, screen):
    """Puts a screen between its two comments in docs/gallery.md."""
    begins, ends = f"<!-- screen: {name} -->\n", "<!-- end of screen -->\n"
    before, rest = TEXT.read_text().split(begins)
    indented = re.sub("^(?=.)", "    ", screen, flags=re.MULTILINE)
    TEXT.write_text(f"{before}{begins}\n{indented}\n\n{ends}{rest.split(ends, 1)[1]}")


if __name__ == "__main__":
    main()
