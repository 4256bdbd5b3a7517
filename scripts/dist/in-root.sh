#!/usr/bin/env bash
# Runs inside a fresh root directory (created by test.sh), with the distributed files in /dist. Installs the kind of package given as first argument
# as a user would, uses it for its main task, and removes it again. The last line that it prints is a summary.
set -euo pipefail
kind=$1 version=$2 arch=$3 debian=$4
cd /tmp

fail() {
    echo "$*" >&2
    exit 1
}

# Records a shell that launches a known number of programs, and checks that number in the recording.
record() {
    [ "$(spawnscope --version)" = "spawnscope $version" ] || fail "not spawnscope $version: $(spawnscope --version)"
    spawnscope record -o /tmp/recording.db -- sh -c 'i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; ls / >/dev/null' 2>report
    cat report
    grep -q 'Fix first  true, 20 x' report || fail "the screen names no fix"
    spawnscope report --full recording.db | grep -qE ' create +[0-9.]+ [mu]s' || fail "the report has no phases"
    local launches trues
    trues=$(spawnscope export --format ndjson recording.db | grep -c '"/bin/true"') || fail "no launch of /bin/true was recorded"
    [ "$trues" -eq 20 ] || fail "$trues launches of /bin/true were recorded, and 20 were made"
    launches=$(spawnscope report --json recording.db | python3 -c 'import json, sys; print(json.load(sys.stdin)["launches"])')
    [ "$launches" -eq 22 ] || fail "$launches launches were recorded, and 22 were made"
    summary="recorded $launches launches"
}

# Checks that the manual pages are installed, and that the shells can read the completions.
check_documents() { # PREFIX
    [ -n "$(find "$1/share/man/man1" -name 'spawnscope-record.1*')" ] || fail "no manual page"
    bash -n "$1/share/bash-completion/completions/spawnscope"
    grep -q '#compdef spawnscope' "$1"/share/zsh/*/_spawnscope
    grep -q 'complete -c spawnscope' "$1/share/fish/vendor_completions.d/spawnscope.fish"
}

# Fails if any file is left after the packages were removed. Only spawnscope's files in users' homes may stay.
expect_gone() { # further conditions of find
    ! find / -xdev "$@" \( -name '*spawnscope*' -o -name '*vspawn*' \) -not -path '/dist*' -not -path '/tmp/*' -not -path '/root*' | grep . ||
        fail "the packages left these files behind"
}

# Builds a program with the shared library, and with the static one, with the flags from pkg-config.
compile() {
    cat >program.c <<'END'
#include <stdio.h>
#include <vspawn.h>

int main(void)
{
	const char *command[] = { "sh", "-c", "echo from a child; exit 3", NULL };
	char line[64];
	FILE *stream = vspawn_popen(command, "r");
	if (!stream || !fgets(line, sizeof line, stream))
		return 1;
	printf("%s", line);
	return vspawn_pclose(stream) == 3 << 8 ? 0 : 2;
}
END
    [ "$(pkg-config --modversion vspawn)" = "$version" ] || fail "pkg-config finds another version of vspawn"
    cc program.c -o shared $(pkg-config --cflags --libs vspawn)
    [ "$(./shared)" = "from a child" ]
    readelf --dynamic shared | grep -q 'NEEDED.*libvspawn.so.0' || fail "the program does not use the shared library"
    cc program.c -o static $(pkg-config --cflags vspawn) "$(pkg-config --variable=libdir vspawn)/libvspawn.a" \
        $(pkg-config --static --libs vspawn | sed 's/-lvspawn//')
    [ "$(./static)" = "from a child" ]
    ! readelf --dynamic static | grep -q libvspawn || fail "the static program uses the shared library"
    summary="$summary, compiled and ran C programs"
}

archive() {
    tar -xzf "/dist/spawnscope-$version-$arch-linux.tar.gz" -C /usr/local --strip-components 1
    ldconfig
    record
    check_documents /usr/local
    compile
    ldd /usr/local/bin/spawnscope
}

deb() {
    local packages=(spawnscope libvspawn0 libvspawn-dev)
    (cd /dist && printf './%s\n' "${packages[@]/%/_$version-1_$debian.deb}" |
        xargs apt-get install --yes -o Dir::Etc::sourcelist=/dev/null)
    dpkg --verify "${packages[@]}"
    record
    check_documents /usr
    [ -s /usr/share/doc/spawnscope/copyright ] || fail "no copyright"
    compile
    dpkg --purge "${packages[@]}"
    expect_gone
}

# Makes and installs an RPM that provides this root's C library, with all its versions. It represents the system, since a root directory of an RPM
# distribution cannot be made from Debian's packages. Dependencies, format, files and removal are handled by rpm itself.
install_rpm_of_the_c_library() {
    local file provides
    provides=$(for file in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libutil.so.1 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1; do
        file=$(ldconfig -p | sed -n "s/.*[[:space:]]$file .* => //p" | head -1)
        [ -z "$file" ] || realpath "$file"
    done | /usr/lib/rpm/elfdeps --provides | sort -u)
    {
        printf '%s\n' 'Name: glibc' 'Version: 0' 'Release: 0' 'Summary: What the C library of this root provides' 'License: none' 'AutoReq: no'
        # shellcheck disable=SC2086
        printf 'Provides: %s\n' $provides
        printf '%s\n' '%description' 'See the summary.' '%files'
    } >glibc.spec
    rpmbuild --quiet -bb --define "_topdir /tmp/rpmbuild" glibc.spec
    rpm "${on_debian[@]}" --install rpmbuild/RPMS/*/glibc-0-0.*.rpm
}

rpm_packages() {
    # Older versions of rpm refuse to install on Debian without this option.
    local on_debian=(--force-debian)
    rpm "${on_debian[@]}" --version >/dev/null 2>&1 || on_debian=()
    install_rpm_of_the_c_library
    local packages=(spawnscope libvspawn libvspawn-devel)
    (cd /dist && rpm --checksig --nosignature "${packages[@]/%/-$version-1.$arch.rpm}")
    (cd /dist && rpm "${on_debian[@]}" --install "${packages[@]/%/-$version-1.$arch.rpm}")
    rpm --verify "${packages[@]}"
    record
    check_documents /usr
    # Debian's loader and pkg-config do not search /usr/lib64 by default; those of RPM distributions do.
    echo /usr/lib64 >/etc/ld.so.conf.d/lib64.conf
    ldconfig
    PKG_CONFIG_PATH=/usr/lib64/pkgconfig PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 compile
    rpm "${on_debian[@]}" --erase "${packages[@]}"
    # cargo-generate-rpm 0.21 cannot assign directories to a package.
    expect_gone ! -type d
}

wheel() {
    python3 -m pip install --no-index --no-deps --target site "/dist/vspawn-$version"-*"$arch".whl
    cat >program.py <<'END'
import vspawn

done = vspawn.run(["sh", "-c", "read line; echo got $line; exit 3"], input="a line\n", capture_output=True, text=True)
assert (done.returncode, done.stdout) == (3, "got a line\n"), done
try:
    vspawn.run(["true"], cwd="/no/such")
except FileNotFoundError as error:
    assert error.stage == "chdir", error
else:
    raise SystemExit("a missing directory is not an error")
with vspawn.Popen(["sort"], stdin=vspawn.PIPE, stdout=vspawn.PIPE) as child:
    assert child.communicate(b"b\na\n")[0] == b"a\nb\n"
END
    PYTHONPATH=site python3 program.py
    summary="$(python3 --version) ran three children"
}

# Debian's Node has no npm, which would only unpack the file, too.
npm() {
    mkdir -p node_modules/vspawn
    tar -xzf "/dist/vspawn-$version.tgz" -C node_modules/vspawn --strip-components 1
    [ -s node_modules/vspawn/copyright ] || fail "no copyright"
    cat >program.cjs <<'END'
const assert = require("assert");
const { promises, spawn } = require("vspawn");

const child = spawn("sh", ["-c", "read line; echo got $line; exit 3"]);
child.stdout.once("data", (data) => assert.equal(`${data}`, "got a line\n"));
child.stdin.end("a line\n");
child.on("close", async (code) => {
  assert.equal(code, 3);
  assert.equal((await promises.exec("printf 'of a %s' program")).stdout, "of a program");
  spawn("true", [], { cwd: "/no/such" }).on("error", ({ stage }) => assert.equal(stage, "chdir"));
});
END
    node program.cjs
    summary="Node $(node --version) ran three children"
}

case $kind in
archive | deb | npm | wheel) "$kind" ;;
rpm) rpm_packages ;;
*) fail "unknown kind '$kind': it must be archive, deb, npm, rpm or wheel" ;;
esac
echo "$summary"
