# make run        set up and serve on :10073; ARGS="--flag ..." passes flags
# make test       install what the tests need and run them; ARGS="-k name" passes options to pytest
# make test-long  the tests that take too long for every change
# make lint       style, format and types
# make bench      side by side with node_exporter (root)
# make docs       write the generated files: docs/metrics.md, docs/drivers.md
# make lock       pin the newest dependencies that pyproject.toml allows
# make clean      remove what the others made
#
# PYTHON=python3.12 chooses the interpreter (3.11 or newer); VENV=folder the virtual environment.

SHELL := /bin/bash
VENV ?= .venv
PYTHON ?=
ARGS ?=
TOOLS := $(CURDIR)/.tools
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
UV := uv==0.13.9
export PATH := $(TOOLS)/usr/bin:$(PATH):/usr/sbin:/sbin
export PYTHON

.PHONY: run test test-long lint bench docs lock clean tools

run: $(VENV)/.runtime
	@exec $(BIN)/fabric-exporter $(ARGS)

test: $(VENV)/.dev tools
	$(BIN)/python -m pytest $(ARGS)

test-long: $(VENV)/.dev tools
	$(BIN)/python -m pytest -m long $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(VENV)/.runtime tools
	$(BIN)/python -m bench.scrape $(ARGS)

docs: $(VENV)/.runtime
	$(BIN)/fabric-exporter generate

COMPILE = $(VENV)/lock/bin/uv --quiet pip compile --universal --generate-hashes --no-annotate --upgrade \
	--custom-compile-command "make lock" --python-version 3.11

lock: | $(BIN)/python
	$(BIN)/python -m venv $(VENV)/lock && $(VENV)/lock/bin/python -m pip --quiet install $(UV)
	$(COMPILE) pyproject.toml --output-file requirements.txt
	$(COMPILE) pyproject.toml --extra dev --constraints requirements.txt --output-file requirements-dev.txt
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'])" | \
		$(COMPILE) - --output-file requirements-build.txt

clean:
	rm -rf $(VENV) $(TOOLS) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The daemons are unpacked, not installed: Debian's packages would start them as services.
tools:
	@tools/need install git=git ethtool=ethtool ip=iproute2 ps=procps unshare=util-linux setpriv=util-linux \
		curl=curl openssl=openssl systemd-analyze=systemd
	@tools/need unpack $(TOOLS) prometheus=prometheus promtool=prometheus amtool=prometheus-alertmanager \
		prometheus-node-exporter=prometheus-node-exporter

$(BIN)/python:
	@tools/venv $(VENV)

$(VENV)/.runtime: requirements.txt requirements-build.txt pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements-build.txt -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	$(PIP) install --require-hashes -r requirements-dev.txt
	@touch $@
