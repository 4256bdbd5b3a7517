#!/usr/bin/env bash
# Runs the test suites of other projects with and without a program that starts commands (a recorder, accel), and compares the results of the tests.
# Such a program must not change any result.
#
#   scripts/held-out-suites.sh [--only SUITE,...] PREFIX...
#
# PREFIX is put before each command. It must print nothing on standard error, which is compared too. For example:
#
#   scripts/held-out-suites.sh target/release/spawnscope record --collector ptrace -q -o /tmp/suites.db --
#   scripts/held-out-suites.sh --only bash,make target/release/spawnscope accel --
#
#   --only   some of: python bash make git perl (default: all). For Python, only test_subprocess is run; for the others, the tests that
#            launch many processes
#
# The sources are those of Debian 12. They are downloaded once to target/held-out or $HELD_OUT, where bash and git are built; make and perl are
# tested as installed. A test whose results differ is repeated with and without the prefix, since some depend on time. The exit status is 1 if a
# test never had the same results with the prefix as without it.
set -euo pipefail
cd "$(dirname "$0")/.."

suites=(python bash make git perl)
if [ "${1:-}" = --only ]; then
    IFS=, read -ra suites <<<"${2:?--only needs the names of suites}"
    shift 2
fi
case ${1:-} in
    '' | -*) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;;
esac
prefix=("$@")
[[ ${prefix[0]} != */* ]] || prefix[0]=$(realpath "${prefix[0]}")
sources=$(mkdir -p "${HELD_OUT:-target/held-out}" && realpath "${HELD_OUT:-target/held-out}")
results=$(mktemp -d)
trap 'rm -rf --one-file-system "$results"' EXIT
# The time limit of a test, in seconds. Without a prefix, the longest test takes a minute.
limit=900
export LC_ALL=C GIT_CONFIG_NOSYSTEM=1
unset MAKEFLAGS MAKELEVEL MFLAGS

# fetch PACKAGE: downloads the source of a package and unpacks it to $sources/PACKAGE.
fetch() {
    local package=$1
    [ ! -d "$sources/$package" ] || return 0
    scripts/suite-source.sh bookworm "$sources" "$package"
    (cd "$sources" && dpkg-source --extract "$package"_*.dsc "$package.new" >/dev/null && mv "$package.new" "$package")
}

# build PACKAGE COMMAND: fetches the source of a package and runs the command in it, if that was not done before.
build() {
    fetch "$1"
    [ -e "$sources/$1/held-out-built" ] || (cd "$sources/$1" && bash -ec "$2" && touch held-out-built) >"$sources/$1.log" 2>&1 || {
        echo "building $1 failed: $sources/$1.log" >&2
        exit 1
    }
}

# Masks times, addresses, process ids and temporary names, which differ from run to run.
mask() {
    sed -E -e 's/[0-9]+(\.[0-9]+)? ?(s|ms|sec|secs|seconds|min)\b/TIME/g' -e 's/0x[0-9a-f]+/ADDRESS/g' -e 's/\b[0-9]{3,}\b/N/g' \
        -e 's/tmp[A-Za-z0-9_]{6,}/TMP/g'
}

# once INTO FILTER COMMAND...: runs a command, and writes the lines of its output that match FILTER, and its status, to INTO.
once() {
    local into=$1 filter=$2 status=0
    shift 2
    timeout --kill-after=10 "$limit" "$@" </dev/null >"$results/output" 2>&1 || status=$?
    { mask <"$results/output" | grep -aE "$filter" | sort || true; echo "status $status"; } >"$into"
}

failed=0 tests=0
# compare NAME FILTER COMMAND...: compares the results of a command with and without the prefix, in the current directory.
compare() {
    local name=$1 filter=$2 attempt plain
    shift 2
    tests=$((tests + 1))
    rm -f "$results"/{plain,prefixed}.*
    for attempt in 1 2 3; do
        once "$results/plain.$attempt" "$filter" "$@"
        once "$results/prefixed.$attempt" "$filter" "${prefix[@]}" "$@"
        if [ "$(cat "$results/plain.$attempt")" = "status 1" ]; then
            echo "FAILS      $name: without the prefix, it fails and has no results"
            failed=1
            return
        fi
        for plain in "$results"/plain.*; do
            if cmp -s "$plain" "$results/prefixed.$attempt"; then
                echo "same       $name: $(($(wc -l <"$plain") - 1)) results, $(tail -n 1 "$plain")$([ "$attempt" = 1 ] || echo " (attempt $attempt)")"
                return
            fi
        done
    done
    echo "DIFFERENT  $name"
    diff "$results/plain.3" "$results/prefixed.3" | head -n 20 || true
    failed=1
}

python_suite() {
    local directory=$sources/python
    mkdir -p "$directory"
    if ! /usr/bin/python3 -c 'import test.test_subprocess' 2>/dev/null && [ ! -d "$directory/usr" ]; then
        local version
        version=$(/usr/bin/python3 -c 'import sys; print("python3.%d" % sys.version_info[1])')
        (cd "$directory" && apt-get -qq -o APT::Sandbox::User=root download "lib$version-testsuite" &&
            dpkg-deb --extract ./*-testsuite_*.deb .)
        # The package lacks the part of `test` that is in the package of the standard library.
        cp -r /usr/lib/python3.*/test "$directory"/usr/lib/python3.*/
    fi
    cat >"$directory/results.py" <<'PYTHON'
# Prints the outcome of each test of CPython's test_subprocess.
import glob, sys, unittest
sys.path[:0] = glob.glob(f"{sys.path[0]}/usr/lib/python3.*")
import test.test_subprocess as tests
outcomes = []
class Outcomes(unittest.TestResult):
    def stopTest(self, case):
        kind = {case.id(): kind for kind in ("errors", "failures", "skipped") for case, _ in getattr(self, kind)}
        outcomes.append(f"RESULT {case.id()} {kind.get(case.id(), 'ok')}")
unittest.defaultTestLoader.loadTestsFromModule(tests).run(Outcomes())
print("\n".join([""] + outcomes))
PYTHON
    (cd "$directory" && compare "python test_subprocess" ^RESULT /usr/bin/python3 results.py && store_counts)
}

bash_suite() {
    local test
    build bash './configure --quiet --without-bash-malloc && make -s -j2 && make -s recho zecho printenv xcase && cp recho zecho printenv xcase tests'
    cd "$sources/bash/tests"
    export THIS_SH=$sources/bash/bash BUILD_DIR=$sources/bash PATH=$PWD:$PATH TMPDIR=/tmp BASH_TSTOUT=$results/bash
    for test in builtins comsub comsub-eof comsub-posix coproc execscript exp-tests heredoc herestr invert jobs lastpipe nquote procsub redir \
        set-e trap varenv vredir; do
        [ ! -e "run-$test" ] || compare "bash $test" . sh "./run-$test"
    done
}

# Tests the system's make with the tests from its source.
make_suite() {
    local kind
    build make-dfsg true
    cd "$sources/make-dfsg/tests"
    for kind in features functions misc options targets variables; do
        # shellcheck disable=SC2046
        compare "make $kind" '\.\.\.\.' perl run_make_tests.pl -make /usr/bin/make $(cd scripts && printf '%s\n' "$kind"/*)
    done
}

git_suite() {
    local test
    build git 'make -s -j2 NO_CURL=1 NO_OPENSSL=1 NO_EXPAT=1 NO_TCLTK=1 NO_GETTEXT=1 NO_PYTHON=1 NO_PERL=1 all'
    cd "$sources/git/t"
    for test in t0000-basic t0001-init t0005-signals t0012-help t0021-conversion t0061-run-command t0068-for-each-repo t0210-trace2-normal; do
        compare "git $test" '^(ok|not ok|#|1\.\.)' "./$test.sh"
    done
}

# Tests the system's perl with the tests from its source.
perl_suite() {
    local test
    # shellcheck disable=SC2016
    build perl '[ -d source-lib ] || mv lib source-lib; rm -rf lib; mkdir lib
        for part in $(/usr/bin/perl -e "print qq(@INC)"); do
            case $part in /usr/lib/*/perl-base | /usr/share/perl/5.* | /usr/lib/*/perl/5.*) cp -a "$part/." lib ;; esac
        done'
    cd "$sources/perl/t"
    for test in op/exec.t op/fork.t op/die_exit.t op/kill0.t op/alarm.t op/wantarray.t io/pipe.t io/dup.t io/open.t io/argv.t run/exit.t \
        run/script.t run/fresh_perl.t; do
        compare "perl $test" '^ *(ok|not ok|1\.\.)' /usr/bin/perl "$test"
    done
}

# Each suite runs in a subshell, since it changes directory and environment. This function passes its counts on.
store_counts() { echo "$tests $failed" >"$results/counts"; }
for suite in "${suites[@]}"; do
    (
        "${suite}_suite"
        store_counts
    )
    read -r tests failed <"$results/counts"
done
echo "$tests tests, $([ "$failed" = 0 ] && echo "all with the same results" || echo "some with DIFFERENT results")"
exit "$failed"
