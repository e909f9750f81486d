# Every target is idempotent; the second run is quick. `make` alone explains.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready-$(shell cat pyproject.toml ci/build.lock ci/requirements.lock 2>/dev/null | cksum | tr -d ' ')
ARGS ?=
TESTED = trial-runs/tests-$(shell (git rev-parse HEAD; git diff HEAD) 2>/dev/null | cksum | cut -d' ' -f1).jsonl

.DEFAULT_GOAL := help
.PHONY: help setup browser services dockerd images demo test test-all lint bench clients calibrate cuts upgrade-matrix cases mutate clean

help:  ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## make .venv with kafka-trial in it, from the hash-pinned lock

$(STAMP): pyproject.toml ci/build.lock ci/requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kafka-trial needs Python 3.11 or newer; this is $$($(PYTHON) --version). Try: make setup PYTHON=python3.11"; exit 2; }
	PYTHON=$(PYTHON) ci/install.sh $(VENV) -e
	@rm -f $(VENV)/.ready-* && touch $@
	@echo "set up in $(VENV): \`source $(BIN)/activate\` puts kafka-trial and pytest on your path; \`make demo\` shows a first trial"

browser:  ## Chromium, in which the tests look at pages: installed where apt-get may; without it they are skipped
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } \
	  || echo "there is no Chromium: the tests of the page will be skipped"

services: browser  ## Chromium, PostgreSQL and Docker, for the tests that need them: installed where apt-get may
	@have() { command -v $$1 >/dev/null || ls /usr/lib/postgresql/*/bin/$$1 >/dev/null 2>&1; }; \
	 for pair in initdb=postgresql dockerd=docker.io iptables=iptables ip=iproute2; do \
	   have $${pair%=*} || { apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $${pair#*=} >/dev/null; } \
	     || echo "there is no $${pair#*=}: the tests that need it will be skipped"; \
	 done

dockerd: setup  ## a private Docker engine, as root where dockerd is installed; it stays until `.venv/bin/python -m kafka_trial.containers.private_engine stop`
	@$(BIN)/python -m kafka_trial.containers.private_engine start

images: setup  ## container images of Kafka, Toxiproxy and the example teams, from package registries alone; kept by the engine
	$(BIN)/python -m lab.images

demo: setup  ## a sound and a faulty consumer on one scenario: both verdicts, with the evidence
	$(BIN)/python -m kafka_trial demo $(ARGS)

test: setup lint  ## all quick tests, and a twentieth of the slow ones: another for each commit
	ci/test.sh --tier everyday $(ARGS)

test-all: setup lint  ## every test; goes on where it was stopped, and records in reports/ when all have passed
	@mkdir -p trial-runs
	DURATIONS=$(TESTED) ci/test.sh --tier all --skip-passed $(ARGS)
	$(if $(ARGS),,$(BIN)/python tests/durations.py record $(TESTED))

lint: setup  ## style and types only
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: setup  ## minimum, median, maximum and ratios of what this project calls fast
	$(BIN)/python -m lab.bench $(ARGS)

clients: setup  ## build the example consumers in Go, Java and JavaScript, as far as their tools are on this machine
	@for folder in fixtures/unusual/*/Makefile fixtures/upgrades/*/Makefile; do $(MAKE) --no-print-directory -C $$(dirname $$folder) || echo "not built: $$(dirname $$folder)"; done

calibrate: setup clients  ## both judges on a fresh seed, then all consumers on their suites, five times, resumable: see reports/
	$(BIN)/python -m lab.agreement
	$(BIN)/python -m lab.calibration $(ARGS)

cuts: setup clients  ## cut references of four libraries at every place of every API, resumable: rows and page in reports/
	$(BIN)/python -m lab.cuts $(ARGS)

upgrade-matrix: setup clients  ## upgrades between pairs of versions, with sound consumers of four libraries, resumable: see reports/
	$(BIN)/python -m lab.upgrades $(ARGS)

cases: setup  ## measure the cases that docs/cases tells of, resumable: rows in reports/, pages in docs/cases/
	$(BIN)/python -m lab.cases $(ARGS)

mutate: setup  ## plant bugs in the invariants and see whether the tests notice, resumable: rows and page in reports/
	PYTHONPATH=tests $(BIN)/python -m lab.mutation $(ARGS)

clean:  ## remove what a build or a run left in this folder (never the caches outside it)
	rm -rf $(VENV) build dist trial-runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
