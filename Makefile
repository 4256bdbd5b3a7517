# Everyday tasks. Each target has a few lines; longer tasks are in scripts/.

PREFIX ?= /usr/local
# The architectures for which `make dist` builds packages.
ARCHITECTURES ?= x86_64
CARGO ?= cargo
BINARY := target/release/spawnscope
# Recording with eBPF needs root (or CAP_BPF and CAP_PERFMON); the recorded command itself runs as the user who typed it.
# Without sudo, nothing is put before a command: `record` then uses ptrace, and says so.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,$(shell command -v sudo 2>/dev/null))
# The program that prints the completions. If $(BINARY) is for another architecture, this must be a build for this machine.
RUNNABLE ?= $(BINARY)
BIN_DIR = $(DESTDIR)$(PREFIX)/bin
PRELOAD_FROM ?= target/preload
# `accel` looks for its library in this directory, relative to its own program.
PRELOAD_DIR = $(DESTDIR)$(PREFIX)/lib/spawnscope
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man
MANUALS = $(notdir $(wildcard docs/man/*.1))
BASH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
EXAMPLES = $(DESTDIR)$(PREFIX)/share/doc/spawnscope/examples
# The library for C. The number at the end of its SONAME is also in crates/vspawn-capi/build.rs.
LIBRARY_FROM ?= target/release
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml)
SONAME := libvspawn.so.0
# The library directory below PREFIX. On systems with a directory for each architecture, set it to lib/x86_64-linux-gnu or the like.
LIB_DIR ?= lib
LIBRARIES = $(DESTDIR)$(PREFIX)/$(LIB_DIR)
HEADERS = vspawn.h popen_noshell.h
# The environment of spawnscope-fleet, a Python package.
FLEET_DIR = $(DESTDIR)$(PREFIX)/lib/spawnscope-fleet
# The prefix that is written into vspawn.pc.
PC_PREFIX ?= $(PREFIX)

.PHONY: build build-profiler run test test-all lint bench fixes kernels man fleet test-fleet test-engines
.PHONY: install install-profiler install-library install-fleet
.PHONY: uninstall uninstall-profiler uninstall-library uninstall-fleet dist test-dist

# Without the npm package, whose dependencies nothing else has: scripts/node-package.sh packs it.
build: build-profiler
	$(CARGO) build --release --locked --workspace --exclude vspawn-node
	$(CARGO) build --profile preload --locked -p vspawn-preload

build-profiler:
	@scripts/install-dependencies.sh
	$(CARGO) build --release --locked -p spawnscope

# Builds only what it runs, in a profile that compiles faster; `make build` adds the terminal view, Parquet, and the libraries.
run:
	@scripts/install-dependencies.sh
	$(CARGO) build --profile quick --locked -p spawnscope --no-default-features --features ebpf,flame
	$(AS_ROOT) target/quick/spawnscope record -o target/unpack.db -- examples/unpack.sh

test:
	@scripts/install-dependencies.sh tests
	scripts/test.sh

# The tests that take long, too (scripts/slow-checks.tsv), and the packages of a release.
test-all: test
	scripts/slow-checks.sh --all
	$(MAKE) test-engines dist test-dist

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	scripts/deny.sh

bench: build-profiler
	$(AS_ROOT) python3 benchmarks/overhead.py --binary $(BINARY)

# Takes minutes, and needs a quiet machine. Options of the script go into ARGUMENTS: `make fixes ARGUMENTS=--write`.
fixes: build-profiler
	$(AS_ROOT) python3 benchmarks/fixes.py --binary $(BINARY) $(ARGUMENTS)

# Takes minutes for each kernel. Options of the script go into ARGUMENTS: `make kernels ARGUMENTS="--short 6.1"`.
kernels:
	scripts/kernel-matrix.sh $(ARGUMENTS)

# fleet/ is a Python package, because its engine is a prebuilt one.
fleet:
	scripts/python-environment.sh

test-fleet: fleet
	target/venv/bin/python -m pytest -q fleet/tests

# Compares the answers of three engines to the same questions. Downloads 1.4 GB.
test-engines: fleet
	scripts/fleet-environment.sh
	target/venv-fleet/bin/python fleet/tests/engines_agree.py --store

man: build-profiler
	$(BINARY) man docs/man

# Does not build: `sudo make install` must not leave root's files in target/.
install: install-profiler install-library

install-profiler:
	@test -x $(BINARY) -a -f $(PRELOAD_FROM)/libvspawn_preload.so || { echo "nothing to install: run \`make build\` first" >&2; exit 1; }
	install -D -m 755 $(BINARY) $(BIN_DIR)/spawnscope
	install -D -m 755 $(PRELOAD_FROM)/libvspawn_preload.so $(PRELOAD_DIR)/libvspawn_preload.so
	install -d $(MAN_DIR)/man1 $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
	install -m 644 $(addprefix docs/man/,$(MANUALS)) $(MAN_DIR)/man1
	install -D -m 644 -t $(EXAMPLES) examples/unpack.sh
	$(RUNNABLE) completions bash > $(BASH_COMPLETIONS)/spawnscope
	$(RUNNABLE) completions zsh > $(ZSH_COMPLETIONS)/_spawnscope
	$(RUNNABLE) completions fish > $(FISH_COMPLETIONS)/spawnscope.fish
	chmod 644 $(BASH_COMPLETIONS)/spawnscope $(ZSH_COMPLETIONS)/_spawnscope $(FISH_COMPLETIONS)/spawnscope.fish

# Downloads the engine, so it works without \`make build\`.
install-fleet:
	python3 -m venv $(FLEET_DIR)
	$(FLEET_DIR)/bin/pip install --quiet --disable-pip-version-check './fleet[s3]'
	install -d $(BIN_DIR)
	ln -sf $(PREFIX)/lib/spawnscope-fleet/bin/spawnscope-fleet $(BIN_DIR)/spawnscope-fleet

install-library:
	@test -f $(LIBRARY_FROM)/libvspawn.so || { echo "nothing to install: run \`make build\` first" >&2; exit 1; }
	install -d $(LIBRARIES)/pkgconfig
	install -m 755 $(LIBRARY_FROM)/libvspawn.so $(LIBRARIES)/libvspawn.so.$(VERSION)
	ln -sf libvspawn.so.$(VERSION) $(LIBRARIES)/$(SONAME)
	ln -sf $(SONAME) $(LIBRARIES)/libvspawn.so
	install -m 644 $(LIBRARY_FROM)/libvspawn.a $(LIBRARIES)/libvspawn.a
	sed -e 's|@PREFIX@|$(PC_PREFIX)|' -e 's|@LIB_DIR@|$(LIB_DIR)|' -e 's|@VERSION@|$(VERSION)|' \
		crates/vspawn-capi/vspawn.pc.in > $(LIBRARIES)/pkgconfig/vspawn.pc
	chmod 644 $(LIBRARIES)/pkgconfig/vspawn.pc
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include $(addprefix crates/vspawn-capi/include/,$(HEADERS))
	install -D -m 644 -t $(MAN_DIR)/man3 docs/man/vspawn.3

# Removes the files, with the same PREFIX and DESTDIR; directories stay, since others may use them.
uninstall: uninstall-profiler uninstall-library uninstall-fleet

uninstall-profiler:
	rm -f $(BIN_DIR)/spawnscope $(addprefix $(MAN_DIR)/man1/,$(MANUALS))
	rm -f $(PRELOAD_DIR)/libvspawn_preload.so $(EXAMPLES)/unpack.sh
	rm -f $(BASH_COMPLETIONS)/spawnscope $(ZSH_COMPLETIONS)/_spawnscope $(FISH_COMPLETIONS)/spawnscope.fish

uninstall-fleet:
	rm -rf $(FLEET_DIR)
	rm -f $(BIN_DIR)/spawnscope-fleet

# The file that the SONAME links to may be of an older version than this checkout.
uninstall-library:
	rm -f $(LIBRARIES)/libvspawn.so.$(VERSION) $(LIBRARIES)/$$(readlink $(LIBRARIES)/$(SONAME) || echo $(SONAME))
	rm -f $(addprefix $(LIBRARIES)/,$(SONAME) libvspawn.so libvspawn.a pkgconfig/vspawn.pc)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/,$(HEADERS)) $(MAN_DIR)/man3/vspawn.3

# Builds the files of a release in target/dist.
dist:
	scripts/dist/dist.sh $(ARCHITECTURES)

# Installs and uses each of these files in fresh root directories.
test-dist:
	$(AS_ROOT) scripts/dist/test.sh $(ARCHITECTURES)
