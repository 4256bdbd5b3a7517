# Everyday tasks. Each target is a few lines; what takes more lives in scripts/.

PREFIX ?= /usr/local
# Of which `make dist` makes packages.
ARCHITECTURES ?= x86_64
CARGO ?= cargo
BINARY := target/release/spawnscope
# Tracing needs root (or CAP_BPF and CAP_PERFMON); the traced command itself runs as the user who typed it.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
# Prints the completions: another build, where $(BINARY) is for another architecture.
RUNNABLE ?= $(BINARY)
BIN_DIR = $(DESTDIR)$(PREFIX)/bin
# `accel` looks for its library here, relative to its own program.
PRELOAD_FROM ?= target/preload
PRELOAD_DIR = $(DESTDIR)$(PREFIX)/lib/spawnscope
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man
MANUALS = $(notdir $(wildcard docs/man/*.1))
BASH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
# The library for C. The last number of its SONAME is in crates/vspawn-capi/build.rs too.
LIBRARY_FROM ?= target/release
VERSION = $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml)
SONAME := libvspawn.so.0
# Below PREFIX; where the system has one directory for each architecture, it is lib/x86_64-linux-gnu or the like.
LIB_DIR ?= lib
LIBRARIES = $(DESTDIR)$(PREFIX)/$(LIB_DIR)
HEADERS = vspawn.h popen_noshell.h
# What vspawn.pc says the prefix is.
PC_PREFIX ?= $(PREFIX)

.PHONY: build run test lint bench fixes kernels man fleet test-fleet test-engines
.PHONY: install install-profiler install-library install-fleet
.PHONY: uninstall uninstall-profiler uninstall-library dist test-dist

build:
	@scripts/install-dependencies.sh
	$(CARGO) build --release --locked
	$(CARGO) build --profile preload --locked -p vspawn-preload

run: build
	$(AS_ROOT) $(BINARY) record -o target/unpack.db -- examples/unpack.sh

test:
	@scripts/install-dependencies.sh tests
	scripts/test.sh

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	scripts/deny.sh

bench: build
	$(AS_ROOT) python3 benchmarks/overhead.py --binary $(BINARY)

# Minutes on a quiet machine; arguments as in `make fixes ARGUMENTS=--write`.
fixes: build
	$(AS_ROOT) python3 benchmarks/fixes.py --binary $(BINARY) $(ARGUMENTS)

# Minutes for each kernel; arguments as in `make kernels ARGUMENTS="--short 6.1"`.
kernels:
	scripts/kernel-matrix.sh $(ARGUMENTS)

# A package of its own: its engine takes minutes to build.
fleet:
	$(CARGO) build --release --locked --manifest-path fleet/Cargo.toml

test-fleet:
	scripts/python-environment.sh
	$(CARGO) test --locked --manifest-path fleet/Cargo.toml

# The questions on three engines; 800 MB to download.
test-engines: fleet
	scripts/fleet-environment.sh
	target/venv-fleet/bin/python fleet/tests/engines_agree.py --binary fleet/target/release/spawnscope-fleet

man: build
	$(BINARY) man docs/man

# Does not build: `sudo make install` must not leave root's files in target/.
install: install-profiler install-library

install-profiler:
	@test -x $(BINARY) -a -f $(PRELOAD_FROM)/libvspawn_preload.so || { echo "nothing to install: run \`make build\` first" >&2; exit 1; }
	install -D -m 755 $(BINARY) $(BIN_DIR)/spawnscope
	install -D -m 755 $(PRELOAD_FROM)/libvspawn_preload.so $(PRELOAD_DIR)/libvspawn_preload.so
	install -d $(MAN_DIR)/man1 $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
	install -m 644 $(addprefix docs/man/,$(MANUALS)) $(MAN_DIR)/man1
	$(RUNNABLE) completions bash > $(BASH_COMPLETIONS)/spawnscope
	$(RUNNABLE) completions zsh > $(ZSH_COMPLETIONS)/_spawnscope
	$(RUNNABLE) completions fish > $(FISH_COMPLETIONS)/spawnscope.fish
	chmod 644 $(BASH_COMPLETIONS)/spawnscope $(ZSH_COMPLETIONS)/_spawnscope $(FISH_COMPLETIONS)/spawnscope.fish

install-fleet:
	@test -x fleet/target/release/spawnscope-fleet || { echo "nothing to install: run \`make fleet\` first" >&2; exit 1; }
	install -D -m 755 fleet/target/release/spawnscope-fleet $(BIN_DIR)/spawnscope-fleet

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
uninstall: uninstall-profiler uninstall-library

uninstall-profiler:
	rm -f $(BIN_DIR)/spawnscope $(BIN_DIR)/spawnscope-fleet $(addprefix $(MAN_DIR)/man1/,$(MANUALS))
	rm -f $(PRELOAD_DIR)/libvspawn_preload.so
	rm -f $(BASH_COMPLETIONS)/spawnscope $(ZSH_COMPLETIONS)/_spawnscope $(FISH_COMPLETIONS)/spawnscope.fish

# The file behind the SONAME may be of an older version than this checkout.
uninstall-library:
	rm -f $(LIBRARIES)/libvspawn.so.$(VERSION) $(LIBRARIES)/$$(readlink $(LIBRARIES)/$(SONAME) || echo $(SONAME))
	rm -f $(addprefix $(LIBRARIES)/,$(SONAME) libvspawn.so libvspawn.a pkgconfig/vspawn.pc)
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/include/,$(HEADERS)) $(MAN_DIR)/man3/vspawn.3

# What releases consist of, in target/dist; each of it installed and used in fresh roots.
dist:
	scripts/dist/dist.sh $(ARCHITECTURES)

test-dist:
	$(AS_ROOT) scripts/dist/test.sh $(ARCHITECTURES)
