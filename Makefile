# Everyday tasks. Each target is a few lines; what takes more lives in scripts/.

PREFIX ?= /usr/local
CARGO ?= cargo
BINARY := target/release/spawnscope
# Tracing needs root (or CAP_BPF and CAP_PERFMON); the traced command itself runs as the user who typed it.
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man/man1
BASH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH_COMPLETIONS = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

.PHONY: build run test lint bench man install

build:
	@scripts/install-dependencies.sh
	$(CARGO) build --release --locked

run: build
	$(AS_ROOT) $(BINARY) record -o target/unpack.db -- examples/unpack.sh

test:
	@scripts/install-dependencies.sh tests
	scripts/test.sh

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny check; else echo "cargo-deny is not installed: licences and advisories were not checked"; fi

bench: build
	$(AS_ROOT) python3 benchmarks/overhead.py --binary $(BINARY)

man: build
	$(BINARY) man docs/man

# Does not build: `sudo make install` must not leave root's files in target/.
install:
	@test -x $(BINARY) || { echo "nothing to install: run \`make build\` first" >&2; exit 1; }
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/spawnscope
	install -d $(MAN_DIR) $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
	install -m 644 docs/man/*.1 $(MAN_DIR)
	$(BINARY) completions bash > $(BASH_COMPLETIONS)/spawnscope
	$(BINARY) completions zsh > $(ZSH_COMPLETIONS)/_spawnscope
	$(BINARY) completions fish > $(FISH_COMPLETIONS)/spawnscope.fish
