#!/usr/bin/env python3
"""Prints the copyright notices of everything that is linked into a distributed program: each Rust package, the C code in these
packages, and Rust's standard library. Equal texts are printed once. Arguments: the target, then cargo's arguments for the build."""

import json
import pathlib
import subprocess
import sys

NAMES = ("licen[cs]e*", "LICEN[CS]E*", "COPYING*", "COPYRIGHT*", "NOTICE*", "UNLICENSE*", "LICENSES/*", "*/LICEN[CS]E*", "*/COPYING*")
# inferno's licence requires that the location of its source is given, libelf's that instructions for replacing it are.
HEAD = """Spawnscope and vspawn are under Apache-2.0 OR MIT, at your option. Copyright The Spawnscope contributors.

The binaries also contain, linked statically, the packages listed below, each under its own licence. Their unchanged sources are the
listed versions at https://crates.io.

libelf of elfutils is under LGPL-3.0-or-later or GPL-2.0-or-later; zlib is under its own licence. Both are built from the copies in the
package libbpf-sys, which is distributed together with the binaries. To use another libelf, replace that copy and build again as
described in CONTRIBUTING.md. Without the feature `vendored`, libelf is the shared library of your system.

The page that `spawnscope html` writes contains uPlot 1.6.32, under MIT, whose text is at the beginning of the page's script.
"""


def packages(target, options):
    """Returns the metadata of every package that is linked into the workspace's packages, sorted by name and version."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target, *options]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    own = set(metadata["workspace_members"])
    todo, found = list(own), set(own)
    while todo:
        for dependency in nodes[todo.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if linked and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                todo.append(dependency["pkg"])
    named = [package for package in metadata["packages"] if package["id"] in found - own]
    return sorted(named, key=lambda package: (package["name"], package["version"]))


def texts(directory):
    """Yields the licence files below a package's directory, as (name, text)."""
    files = {file for name in NAMES for file in directory.glob(name) if file.is_file() and file.suffix not in (".rs", ".html")}
    for file in sorted(files):
        yield str(file.relative_to(directory)), file.read_text(errors="replace").strip()


def standard_text(package, title):
    """Returns the licence of a package without a licence file, as (name, text). The text is that of ours, without its holder."""
    for licence, file in (("Apache-2.0", "LICENSE-APACHE"), ("MIT", "LICENSE-MIT")):
        if licence in (package["license"] or "").replace("/", " OR ").split(" OR "):
            text = pathlib.Path(__file__, "../../..", file).resolve().read_text().strip()
            holders = ", ".join(package["authors"]) or f"the authors of {package['repository']}"
            text = "\n".join(line for line in text.splitlines() if not line.startswith("Copyright"))
            return f"{licence}, copyright {holders}; the package contains no licence file", text
    sys.exit(f"{title}: no licence file found: find it in the package, and add its name to NAMES in {__file__}")


def main():
    target, *options = sys.argv[1:]
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    listed, holders = [], {}
    for package in packages(target, options):
        title = f"{package['name']} {package['version']}"
        listed.append(f"  {title}: {package['license'] or package['license_file']}")
        found = list(texts(pathlib.Path(package["manifest_path"]).parent)) or [standard_text(package, title)]
        for name, text in found:
            holders.setdefault(text, []).append(f"{title}: {name}")
    print(HEAD)
    print("\n".join(listed))
    for text, names in sorted(holders.items(), key=lambda item: item[1]):
        print("\n" + "-" * 80 + "\n" + "\n".join(names) + "\n" + "-" * 80 + "\n" + text)
    library = pathlib.Path(sysroot, "share/doc/rust/COPYRIGHT-library.html")
    print("\n" + "-" * 80 + "\nRust's standard library\n" + "-" * 80 + "\n" + library.read_text())


main()
