# Every target installs what it needs into .venv the first time; a second run starts at once.
PYTHON ?= python3
BIN := .venv/bin
PIP_ARGS ?=
PLAIN_CPU := OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default
SETTINGS := "OMP_NUM_THREADS=1" "OMP_NUM_THREADS=2" "$(PLAIN_CPU)" "OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=avx2" \
	"OMP_NUM_THREADS=1 MKL_CBWR=COMPATIBLE"
QUICK := -n 2 -m "not slow and not browser and not ray"
TRAINS := tests/training tests/circuits tests/models tests/runs tests/commands tests/intervene/concepts

.PHONY: quickstart serve test test-all test-api test-browser test-ray test-portable test-plain-cpu golden check lint format bench docs \
	notebooks pictures site identity lock clean help

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

quickstart: $(BIN)/.installed ## Train a movie-review classifier on the CPU and explain three reviews
	$(BIN)/lexical-sae quickstart

serve: $(BIN)/.installed-serve ## Serve what the quick start trained, on this machine
	$(BIN)/lexical-sae serve results/quickstart

test: $(BIN)/.installed-dev ## The quick suite: offline, seeded, on the CPU
	$(BIN)/python -m pytest $(QUICK)

test-all: $(BIN)/.installed-dev ## Everything, slow and networked tests included
	$(BIN)/python -m pytest -n 2 -m ""

test-browser: $(BIN)/.installed-browser ## The pages in Chromium, which must be installed
	$(BIN)/python -m pytest -m "browser and not slow" tests/explorer tests/report

test-ray: $(BIN)/.installed-ray ## Scoring on a Ray cluster of this machine, with actors killed
	$(BIN)/python -m pytest -m "ray" tests/scale

test-portable: $(BIN)/.installed-dev ## The quick suite as other CPUs and thread counts round
	@failed=; for setting in $(SETTINGS); do \
		echo "=== quick suite with $$setting"; \
		env $$setting $(BIN)/python -m pytest $(QUICK) || failed="$$failed\n  $$setting"; \
	done; \
	if [ -n "$$failed" ]; then printf "failed with:$$failed\n"; exit 1; fi

test-plain-cpu: $(BIN)/.installed-dev ## The tests that train, without vector instructions
	@echo "=== $(TRAINS) with $(PLAIN_CPU)"
	env $(PLAIN_CPU) $(BIN)/python -m pytest $(QUICK) $(TRAINS)

test-api: $(BIN)/.installed-api ## The service: requests made from its OpenAPI document, workers killed under load
	$(BIN)/python -m pytest -m "" tests/serve

golden: $(BIN)/.installed-dev ## Rewrite the stored training curves
	$(BIN)/python -m tests.training.test_loop

check: lint test ## Format, lint, types, import contract and the quick suite

lint: $(BIN)/.installed-dev ## Format, lint and types only
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

format: $(BIN)/.installed-dev ## Rewrite files in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BIN)/.installed-bench ## Speed and memory against the plain head, a dense classifier, captum and SpladePooling
	$(BIN)/python -m benchmarks.run

docs: $(BIN)/.installed ## Write the pages that are made from code
	$(BIN)/python tools/config_docs.py

notebooks: $(BIN)/.installed-dev ## Run the notebooks of examples/ and store what they show
	$(BIN)/python tools/notebooks.py

pictures: $(BIN)/.installed-dev ## Draw the pictures of docs/concepts.md
	$(BIN)/python tools/concept_pictures.py

site: $(BIN)/.installed-site ## The documentation as a site, offline: site/index.html
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -c docs/site -d build/site . site
	@echo "site/index.html"

identity: $(BIN)/.installed ## Print the identity error of every combination of parts
	$(BIN)/python tools/identity_table.py

lock: $(BIN)/.installed ## Resolve the dependencies again and pin them
	$(BIN)/python tools/lock.py

clean: ## Remove the environment and caches
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; run: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv

$(BIN)/.installed: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing into .venv: a minute or two, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(BIN)/.installed-dev: requirements-dev.lock requirements-serve.lock $(BIN)/.installed
	@echo "Installing what testing needs, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-dev.lock
	@touch $@

$(BIN)/.installed-serve: requirements-serve.lock $(BIN)/.installed
	@echo "Installing what serving needs, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-serve.lock
	@touch $@

$(BIN)/.installed-api: requirements-api.txt $(BIN)/.installed-dev
	@echo "Installing what testing the service needs, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-api.txt
	@touch $@

$(BIN)/.installed-browser: requirements-browser.txt $(BIN)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-browser.txt
	@touch $@

$(BIN)/.installed-ray: requirements-ray.txt $(BIN)/.installed-dev
	@echo "Installing Ray, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-ray.txt
	@touch $@

$(BIN)/.installed-site: requirements-site.txt $(BIN)/.installed
	@echo "Installing what the site is made with, once"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-site.txt
	@touch $@

$(BIN)/.installed-bench: requirements-bench.txt $(BIN)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -r requirements-bench.txt
	@touch $@
