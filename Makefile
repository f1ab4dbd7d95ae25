# Everything needs only Python 3.11 or later, Rust 1.88 or later and a C compiler. Each target does its own set-up:
# libraries go into .venv from requirements/lock.txt, the simulator is built there, and both happen again only when
# what they are made from has changed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

VENV := .venv
BIN := $(VENV)/bin
EXTENSION := python/fairlane/_core.abi3.so
# What tests pages and timelines.
BROWSER := target/browser/axe.min.js
# What makes packages, apart from the environment: requirements/release.txt.
RELEASE := target/release-tools
# The oldest glibc that the core works with. Wheels of the libraries need 2.28.
GLIBC := manylinux_2_17
# The interpreter that .venv is made from; by default the newest suitable one on PATH.
PYTHON ?=
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name Cargo.toml -o -name '*.rs' 2>/dev/null)
# The bindings are left out of what links on its own: only a Python process can load them.
RUST_ALONE := --workspace --exclude fairlane-bindings --exclude fairlane-python

# One process more than cores, because some tests wait, but at most six, because each takes up to a gigabyte.
PROCESSES := $(shell cores=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((cores < 5 ? cores + 1 : 6)))
PYTEST := $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist worksteal
# The seed of campaigns, another one each day.
SEED := $(shell expr $$(date +%s) / 86400)

export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# As maturin builds it, so that lints and benchmarks do not compile it in another way: without linking libpython.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PATH := $(PATH):$(HOME)/.cargo/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help build demo test test-all test-more test-binaries quick lint format docs man bench bench-threads bench-million bench-instructions readme pages figures lock wheel wheel-test sdist-test clean

help: ## say what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 26

build: $(EXTENSION) ## set everything up: .venv with the libraries and the simulator

demo: $(EXTENSION) ## simulate the quick start and show who slows down whom
	$(BIN)/fairlane run examples/quickstart.toml

test: $(EXTENSION) ## run the tests, Rust and Python: what guards behaviour, without live and long ones
	cargo test --locked --quiet $(RUST_ALONE)
	$(PYTEST) -m "not live and not long"

test-all: $(EXTENSION) $(BROWSER) ## also long tests, Slurm, OpenSM, namespaces, MPI and browser, and campaigns of random cases
	cargo test --locked --quiet $(RUST_ALONE)
	$(PYTEST) --hypothesis-seed $(SEED)

test-more: $(EXTENSION) $(BROWSER) ## what test leaves out; with SINCE=COMMIT only of what has changed
	$(PYTEST) -m "live or long or campaign" --hypothesis-seed $(SEED) $(if $(SINCE),--changed-since $(SINCE))

test-binaries: ## compile the tests in Rust, which needs no .venv
	cargo test --locked --quiet --no-run $(RUST_ALONE)

quick: $(EXTENSION) ## reproduce savoie2020, scaled to a minute or two
	$(BIN)/fairlane reproduce savoie2020 --quick --resume --out runs/savoie2020-quick

# As releases, because the extension is one: build scripts, as jemalloc's, do not run a second time.
lint: $(EXTENSION) ## check format, lints, types and documentation comments
	cargo fmt --check
	cargo clippy --release --locked --quiet --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --quiet --workspace --no-deps
	RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --quiet --workspace --no-deps --document-private-items
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/stubtest fairlane._core

format: $(VENV)/.libraries ## format all sources
	cargo fmt
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

docs: $(EXTENSION) ## build the documentation into site/
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto -b html docs site
	@echo "site/index.html"

man: $(EXTENSION) ## write the man pages of all commands into man/
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto -b man docs man
	@echo "man/fairlane.1 and the others: man -l man/fairlane.1"

bench: $(EXTENSION) ## measure packet-hops per second, and marks of progress
	cargo bench --locked --package fairlane-python --bench engine
	$(BIN)/python benches/quickstart.py
	$(BIN)/python benches/ready.py
	$(BIN)/python benches/progress.py

bench-threads: ## measure what a second thread gains; needs two free cores
	cargo bench --locked --package fairlane-python --bench threads

bench-million: $(EXTENSION) ## measure set-up time and memory of a thousand to a million hosts; needs 4 GiB
	$(BIN)/python benches/ready.py million

# The runner must be of the same version as the library.
bench-instructions: $(VENV)/.libraries ## count instructions per packet-hop and compare with those stored, list the functions of a hop; needs valgrind
	@command -v valgrind >/dev/null || { echo "valgrind is needed to count instructions: apt-get install valgrind" >&2; exit 1; }
	@export PATH="$(CURDIR)/target/tools/bin:$$PATH"; \
	version="$$(sed -n '/^name = "gungraun"$$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)"; \
	gungraun-runner --version 2>/dev/null | grep -qF "$$version" || \
	    cargo install --locked --quiet --debug --root target/tools gungraun-runner --version "$$version"; \
	$(BIN)/python benches/instructions.py && $(BIN)/python benches/hop.py

readme: $(EXTENSION) ## run what README.md and the examples show and store what they print
	$(BIN)/python tools/update_readme.py

pages: $(EXTENSION) ## run the studies that the pages of examples and questions show, and store what they print
	$(BIN)/python tools/update_pages.py

figures: $(EXTENSION) ## draw the figures of the pages whose numbers are stored in tables
	$(BIN)/python tools/draw_figures.py

lock: $(VENV)/.libraries ## choose library versions anew: Cargo.lock and requirements/lock.txt
	cargo update
	$(BIN)/uv --no-config pip compile pyproject.toml --extra dask --extra papers --extra serve --extra timeline --group dev --group docs --output-file requirements/lock.txt \
	    --upgrade --universal --fork-strategy fewest --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --quiet --custom-compile-command "make lock"
	for name in release installer; do \
	    $(BIN)/uv --no-config pip compile requirements/$$name.in --output-file requirements/$$name.txt --upgrade \
	        --python-version 3.11 --generate-hashes --no-emit-index-url --quiet --custom-compile-command "make lock"; \
	done

wheel: $(RELEASE)/.installed ## build and check the wheel for Linux and the source distribution, into dist/
	@tools/check-toolchain
	rm -rf dist
	CARGO_TARGET_DIR=target/wheel PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" \
	    $(RELEASE)/bin/maturin build --release --locked --zig --compatibility $(GLIBC) --interpreter $(BIN)/python --out dist
	$(RELEASE)/bin/maturin sdist --out dist
	$(RELEASE)/bin/python tools/check_packages.py dist
	$(RELEASE)/bin/auditwheel show dist/*.whl
	$(RELEASE)/bin/twine check --strict dist/*

wheel-test: ## install the wheel in dist/ into a new environment without Rust, and run it there
	tools/test-wheel dist/*.whl

sdist-test: ## build the source distribution in dist/ as pip does, and run the result without Rust
	tools/test-wheel dist/*.tar.gz

clean: ## remove everything that was made, runs excepted
	rm -rf $(VENV) target site jupyter_execute man dist .mypy_cache .import_linter_cache .ruff_cache .pytest_cache .hypothesis docs/reference/generated
	find python -name '*.so' -delete

# The environment is made afresh, so that it holds what the lock file says and nothing else. pip takes over where uv
# does not find its way, as to an index that only pip's configuration names.
$(VENV)/.libraries: requirements/lock.txt requirements/installer.txt
	@tools/check-toolchain
	@python="$$(tools/find-python $(PYTHON))"; echo "making $(VENV) with $$python"; "$$python" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/installer.txt
	$(BIN)/uv pip install --quiet --link-mode copy --require-hashes -r $< || \
	    $(BIN)/python -m pip install --quiet --require-hashes -r $<
	@touch $@

$(EXTENSION): $(VENV)/.libraries $(RUST_SOURCES) pyproject.toml
	@tools/check-toolchain
	$(BIN)/maturin develop --release --locked --skip-install
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(RELEASE)/.installed: requirements/release.txt $(VENV)/.libraries
	$(BIN)/python -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --require-hashes -r $<
	@touch $@

# Without a network the rest is built all the same.
$(BROWSER): requirements/package-lock.json tools/fetch_browser_code.py $(VENV)/.libraries
	$(BIN)/python tools/fetch_browser_code.py
