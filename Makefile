# Everything this repository can do with itself. `make` alone formats, builds, lints and tests; `make help` lists the rest.
#
# The virtual environment, the compiled extension and the console scripts are made on the way by stamp files, so every
# target can be called first, on a machine that has no more than python3, cargo and a C compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PYTHON_AT_LEAST := 3.11
CARGO_AT_LEAST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

export VIRTUAL_ENV := $(CURDIR)/$(VENV)
# A start compiles nothing: what is installed is compiled then, even where PYTHONDONTWRITEBYTECODE is set.
export UV_COMPILE_BYTECODE := 1
# Every warning of the compiler is mended, not collected; the flag stays out of RUSTFLAGS, which would rebuild all crates.
CLIPPY_DENIES := -D warnings

# The cargo profile of the extension, from its next compile on. `make EXTENSION_PROFILE=dev` shares its build with the Rust tests, and checks
# arithmetic and alignment; it is slower.
EXTENSION_PROFILE ?= release
export EXTENSION_PROFILE

NATIVE_SOURCES := $(shell find native -path '*/target' -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)
# Most tests wait for brokers and clients, so more processes than cores keep two cores busy.
TEST_PROCESSES ?= 4
# The seed of random tests and of their order is the commit's: a run of one commit repeats, and each commit tries others.
# `make test SEED=7` tries more.
TEST_SEED := $(or $(SEED),$(shell printf '%d' 0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 0)))

PYTHON_ROOTS := pybroker tests bench spark docs changes

.DEFAULT_GOAL := all
.PHONY: all acl-oracle audit help build wheel wheels profiling fmt lint test demo bench bench-spark bench-streams docs test-rust test-python soak soak-hour chaos exactly-once streams-soak upgrade moving audit-large simulate fuzz micro changelog clean

all: fmt build lint test ## Format, build, lint and test: the round before every commit

help: ## List every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(STAMPS)/broker $(STAMPS)/pybench ## Make .venv with the release extension, .venv/bin/pybroker and .venv/bin/pybench, no more
	@:

wheel: $(STAMPS)/zig $(STAMPS)/test ## Build the wheel of pybroker into dist, for any Linux with glibc 2.17, and run it in an empty environment (LOAD=no: without load generation)
	@rm -f dist/pybroker-*.whl
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --quiet --zig --compatibility manylinux_2_17 --target-dir target/wheel --out dist \
		$(if $(filter no,$(LOAD)),--no-default-features)
	PYBROKER_WHEEL="$$(echo dist/pybroker-*.whl)" $(BIN)/pytest tests/cluster/test_wheel.py

wheels: wheel ## As wheel, and build those of pybroker-bench and pybroker-spark
	@rm -f dist/pybroker_*.whl
	@$(BIN)/uv build --quiet --wheel --out-dir dist bench
	@$(BIN)/uv build --quiet --wheel --out-dir dist spark

profiling: build ## Put an extension with line tables in place, for perf; `make build` after a change ends that
	cargo build --profile profiling --package pybroker-py
	cp target/profiling/lib_native.so pybroker/_native.abi3.so

fmt: $(STAMPS)/lint ## Rewrite Python and Rust sources in the one accepted layout
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .
	cargo fmt --all

lint: build $(STAMPS)/lint $(STAMPS)/test ## Check layout, lints, types, layers and the stub of the extension
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	MYPYPATH= $(BIN)/stubtest pybroker._native --allowlist tests/house/stubtest-allowlist.txt
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --features pybroker-py/simulation --quiet -- $(CLIPPY_DENIES)
	cargo clippy --package pybroker-py --no-default-features --features extension-module --quiet -- $(CLIPPY_DENIES)

test: test-rust test-python ## Run every test; what is skipped is named with what to install

test-rust: $(STAMPS)/tools ## Run the tests of the Rust core
	PROPTEST_RNG_SEED=$(TEST_SEED) cargo test --workspace --exclude pybroker-py --exclude pybroker-bench --quiet --lib --tests

test-python: build $(STAMPS)/test ## Run the Python tests: unit, property, house, conformance, cluster, Spark
	$(BIN)/pytest -n $(TEST_PROCESSES) --dist loadgroup --no-loadscope-reorder --times \
		--randomly-seed=$(TEST_SEED) --hypothesis-seed=$(TEST_SEED)

demo: build ## Start a broker, produce and consume 5,000,000 records, stop it and clean up
	@$(BIN)/python -m pybench.demo

bench-spark: build $(STAMPS)/test ## Measure what runs on Spark, in turns, and write bench/REPORT.md (long; needs Java and Maven)
	$(BIN)/pybench compare --suite spark

bench-streams: build $(STAMPS)/test ## Compare with Kafka Streams in turns, and write bench/REPORT.md (long; needs Java and Maven)
	$(BIN)/pybench compare --suite streams

bench: build $(STAMPS)/test ## Compare with Apache Kafka in turns, and write bench/REPORT.md (long; needs Java, Maven, gcc, npm)
	$(BIN)/pybench compare

micro: build $(STAMPS)/test ## Compare kernels in pure Python, NumPy, Cython and Rust (long)
	@$(BIN)/uv pip install --quiet --editable 'bench[micro]'
	$(BIN)/pytest bench/micro --benchmark-only --benchmark-columns=min,median,ops --benchmark-sort=min

docs: build ## Write docs/reference again from the code
	$(BIN)/python docs/generate.py

soak: build $(STAMPS)/test ## Ten minutes of churn with flat memory; then kill a broker 500 times, members 50 times, and audit (long)
	$(BIN)/python -m pybench.churn --seconds 600
	PYBROKER_METRICS_TOPICS=10000 $(BIN)/pytest tests/conformance/test_metrics.py
	PYBROKER_KILL_ROUNDS=500 $(BIN)/pytest tests/cluster/test_kill.py --timeout 14400
	PYBROKER_GROUP_ROUNDS=50 $(BIN)/pytest tests/conformance/test_group_members.py

soak-hour: build ## An hour of churn with flat memory and descriptors, and what bounds them (long)
	$(BIN)/python -m pybench.churn --seconds 3600

chaos: build $(STAMPS)/test ## Disturb a cluster under load and check what its clients saw: make chaos SECONDS=600 SEED=7 BROKERS=3 (long)
	PYBROKER_CHAOS_SECONDS=$(or $(SECONDS),600) PYBROKER_CHAOS_SEED=$(or $(SEED),0) PYBROKER_CHAOS_BROKERS=$(or $(BROKERS),3) \
		$(BIN)/pytest tests/chaos

moving: build $(STAMPS)/test ## Move three nodes of Apache Kafka onto pybroker and back, also with a metadata log that has lost its beginning (long)
	PYBROKER_MOVING=1 $(BIN)/pytest tests/conformance/test_moving_nodes.py

exactly-once: build $(STAMPS)/test ## Consume, transform and produce in transactions under kills: four kinds of copiers, make exactly-once SECONDS=600 SEED=7 (long)
	PYBROKER_EXACTLY_ONCE_SECONDS=$(or $(SECONDS),600) PYBROKER_CHAOS_SEED=$(or $(SEED),7) \
		$(BIN)/pytest tests/chaos/test_exactly_once.py

streams-soak: build $(STAMPS)/test ## Run a streams application under kills and pauses of instances and brokers, make streams-soak SECONDS=600 SEED=7 (long)
	PYBROKER_STREAMS_SECONDS=$(or $(SECONDS),600) PYBROKER_CHAOS_SEED=$(or $(SEED),7) \
		$(BIN)/pytest tests/chaos/test_streams.py

upgrade: build $(STAMPS)/test ## Upgrade a cluster of the first version that has clusters to this one under load; builds that version once (long)
	PYBROKER_UPGRADE=yes $(BIN)/pytest tests/cluster/test_rolling_upgrade.py --timeout 3600

audit-large: build $(STAMPS)/test ## Send 100,000,000 stamped records and audit them on Spark, then a damaged tenth (long; 14 GB of disk, Java)
	$(BIN)/python -m pybench.large_audit --records 100000000

simulate: build $(STAMPS)/test ## Play whole clusters, each from a seed: a third of them with transactions, make simulate SEEDS=3000 FIRST=0
	PYBROKER_SIMULATED_SEEDS=$(or $(SEEDS),3000) PYBROKER_FIRST_SEED=$(or $(FIRST),0) \
		$(BIN)/pytest -n $(TEST_PROCESSES) tests/simulation/test_whole_clusters.py

acl-oracle: build $(STAMPS)/test ## Compare 100,000 decisions about access control entries with Kafka's StandardAuthorizer (needs Java)
	PYBROKER_ACL_QUESTIONS=100000 .venv/bin/pytest -q -n 0 tests/property/security/test_acls.py

audit: $(STAMPS)/audit $(STAMPS)/test ## Hold all dependencies against the advisories of RustSec and PyPI (needs the network, and cargo-audit)
	@command -v cargo-audit >/dev/null \
		|| { echo "cargo-audit is needed: install it with 'cargo install cargo-audit --locked'" >&2; exit 1; }
	cargo audit --deny warnings $$(sed -n 's/^ *"\(RUSTSEC-[0-9-]*\)".*/--ignore \1/p' native/audit.toml)
	@$(BIN)/uv pip freeze --exclude-editable > $(STAMPS)/frozen.txt
	$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement $(STAMPS)/frozen.txt

fuzz: ## Fuzz every decoder for a minute each (long; needs a nightly toolchain with cargo-fuzz)
	cd native/fuzz && for target in $$(cargo fuzz list); do cargo +nightly fuzz run $$target -- -max_total_time=60 || exit 1; done

changelog: ## Collate changes/*.md into CHANGELOG.md for a release: make changelog VERSION=0.2.0
	$(PYTHON) changes/collate.py $(VERSION)

clean: ## Remove the virtual environment and all build output
	rm -rf $(VENV) target build dist

# What each stamp stands for: tools = new enough tools were seen, venv = an environment with uv and maturin, broker = the
# extension is built and pybroker installed, pybench = so is pybench, lint, test, audit and zig = what linting, testing, auditing
# and a wheel for old systems need. The three distributions are editable.

$(STAMPS)/tools: Cargo.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < tuple(map(int, "$(PYTHON_AT_LEAST)".split("."))))' 2>/dev/null \
		|| { echo "Python $(PYTHON_AT_LEAST) or newer is needed, and '$(PYTHON)' is not: install it (Debian: apt-get install python3 python3-venv) or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv module is needed, and '$(PYTHON)' has none: install it (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@found=$$(cargo --version 2>/dev/null | cut -d ' ' -f 2); oldest=$$(printf '%s\n' "$(CARGO_AT_LEAST)" "$${found:-0}" | sort -V | head -n 1); \
		[ "$$oldest" = "$(CARGO_AT_LEAST)" ] \
		|| { echo "cargo $(CARGO_AT_LEAST) or newer is needed, and $${found:-none} was found: install Rust with rustup (https://rustup.rs)" >&2; exit 1; }
	@command -v cc >/dev/null \
		|| { echo "A C compiler is needed as 'cc' by cargo: install one (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
	@mkdir -p $(@D) && touch $@

$(STAMPS)/venv: | $(STAMPS)/tools
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8'
	@$(BIN)/uv pip install --quiet 'maturin>=1.9,<2'
	@touch $@

$(STAMPS)/broker: $(NATIVE_SOURCES) Cargo.lock pyproject.toml $(STAMPS)/tools $(STAMPS)/venv
	@$(BIN)/maturin develop --profile $(EXTENSION_PROFILE) --features simulation --uv
	@$(BIN)/python -m compileall -q pybroker
	@touch $@

$(STAMPS)/pybench: bench/pyproject.toml $(STAMPS)/venv | $(STAMPS)/broker
	@$(BIN)/uv pip install --quiet --editable bench
	@$(BIN)/python -m compileall -q bench/pybench
	@touch $@

$(STAMPS)/zig: pyproject.toml $(STAMPS)/venv
	@$(BIN)/uv pip install --quiet --group wheel
	@touch $@

$(STAMPS)/lint: pyproject.toml $(STAMPS)/venv
	@$(BIN)/uv pip install --quiet --group lint
	@touch $@

$(STAMPS)/audit: pyproject.toml $(STAMPS)/venv
	@$(BIN)/uv pip install --quiet --group audit
	@touch $@

$(STAMPS)/test: pyproject.toml bench/pyproject.toml spark/pyproject.toml $(STAMPS)/venv | $(STAMPS)/broker
	@$(BIN)/uv pip install --quiet --group test --editable 'bench[plots]' --editable 'spark[connect]'
	@$(BIN)/python -m compileall -q spark/pybroker_spark
	@touch $@
