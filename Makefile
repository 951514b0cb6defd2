# make demo: see it work.    make test: check everything.    make help: the rest.
SHELL := /bin/bash

VENV       := .venv
BENCH_VENV := .venv-bench
PYSIDE_VENV := .venv-pyside
WHEEL_VENV := .venv-wheel
BIN        := $(VENV)/bin
PIP_FLAGS  := --quiet --disable-pip-version-check -c constraints.txt

# The first interpreter that runs and is new enough (a name on PATH may be a stub that does not).
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

# What Qt and the virtual display need on Debian and Ubuntu.
SYSTEM_PACKAGES := xvfb xauth openbox xdotool libgl1 libgl1-mesa-dri libegl1 libglib2.0-0 libdbus-1-3 libfontconfig1 \
	libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 \
	libxcb-randr0 libxcb-render-util0 libxcb-shape0 libxcb-xinerama0 libxcb-xkb1

# macOS has no X server to imitate; there the tests use the screen.
DISPLAY_RUN := $(if $(filter Linux,$(shell uname)),xvfb-run -a -s "-screen 0 1600x1000x24" .ci/with-window-manager)
WHEEL_CHECKS := wheel-check-PyQt6 wheel-check-PySide6-Essentials
BENCHMARKS  := ordinary another_simulator arena field chance confounds maps by_hand lambda_auto sessions against_cebra cebra_models

# Tests train on one thread each; more of them at a time than four gain little.
TEST_PROCESSES := $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count() or 1, 4))' 2>/dev/null || echo 1)

.DEFAULT_GOAL := help
# Environments are made one after the other even under `make -j`.
.NOTPARALLEL:
.PHONY: help dist system install demo test lint pytest pytest-pyside bench bench-quick paper screenshots \
	docs results wheel-check $(WHEEL_CHECKS) clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 15

demo: system install  ## simulate an imaged field, train, and write the painted cells
	$(BIN)/napari-xcebra demo

test: system lint docs pytest  ## lint, types, import contracts, manifest, docs and all tests

lint: install  ## everything of `test` that needs no display
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/npe2 validate --imports napari-xcebra

pytest: system install  ## the tests alone, under a virtual display
	NAPARI_STRICT_QT=1 $(DISPLAY_RUN) $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist worksteal

pytest-pyside: system install $(PYSIDE_VENV)/.installed  ## the tests with windows, with PySide6 instead of PyQt6
	QT_API=pyside6 PYTEST_QT_API=pyside6 NAPARI_STRICT_QT=1 $(DISPLAY_RUN) \
		$(PYSIDE_VENV)/bin/python -m pytest -m gui --numprocesses $(TEST_PROCESSES) --dist worksteal

# This environment has no Qt, which pytest-qt insists on.
bench: $(BENCH_VENV)/.installed  ## measure against the reference implementation
	$(BENCH_VENV)/bin/python -m pytest -p no:pytest-qt tests/test_parity.py tests/interop/test_cebra_round_trip.py
	@set -e; for name in $(BENCHMARKS); do \
		echo "== benchmarks/$$name.py"; $(BENCH_VENV)/bin/python benchmarks/$$name.py; done

# Hours, in as many sittings as it takes: what is measured stays, and the next call goes on.
paper: $(BENCH_VENV)/.installed  ## measure the tables and figures of the papers, and write docs/paper.md
	OMP_NUM_THREADS=1 $(BENCH_VENV)/bin/python benchmarks/paper.py

docs: install  ## build the docs to site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

results: system install  ## run what the docs show, and put what it prints under it
	$(BIN)/python docs/make_results.py

bench-quick: install  ## has anything become slower than the stored baseline? (under a minute)
	$(BIN)/python benchmarks/quick.py

screenshots: system install  ## drive the window through the whole journey and write docs/images/
	$(DISPLAY_RUN) $(BIN)/python docs/screenshots.py
	$(BIN)/python docs/report_picture.py

wheel-check: $(WHEEL_CHECKS)  ## install what would be released into fresh environments, and use it there

dist: system install
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*

# Python takes what lies beside a script before what is installed: hence -P.
$(WHEEL_CHECKS): wheel-check-%: dist
	rm -rf $(WHEEL_VENV)
	$(call create_venv,$(WHEEL_VENV))
	$(WHEEL_VENV)/bin/python -m pip install $(PIP_FLAGS) "$$(echo dist/*.whl)[excel,nwb,parquet,video,zarr]" $*
	$(WHEEL_VENV)/bin/npe2 validate --imports napari-xcebra
	$(WHEEL_VENV)/bin/napari-xcebra demo --out $(WHEEL_VENV)/demo
	$(DISPLAY_RUN) $(WHEEL_VENV)/bin/python -P tests/smoke.py --picture $(WHEEL_VENV)/$*.png

install: $(VENV)/.installed  ## .venv/ with the plugin, napari and the development tools

$(VENV)/.installed: pyproject.toml constraints.txt
	$(call create_venv,$(VENV))
	$(BIN)/python -m pip install $(PIP_FLAGS) --editable '.[all]' --group dev
	@touch $@

$(BENCH_VENV)/.installed: pyproject.toml constraints.txt
	$(call create_venv,$(BENCH_VENV))
	$(BENCH_VENV)/bin/python -m pip install $(PIP_FLAGS) --editable '.[bench]' --group dev
	@touch $@

# All but the binding is that of .venv: another torch would only take room and time.
$(PYSIDE_VENV)/.installed: $(VENV)/.installed
	$(call create_venv,$(PYSIDE_VENV))
	$(BIN)/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
		> "$$($(PYSIDE_VENV)/bin/python -c 'import site; print(site.getsitepackages()[0])')/beside.pth"
	$(PYSIDE_VENV)/bin/python -m pip install $(PIP_FLAGS) PySide6-Essentials
	@touch $@

# pip learned `--group` in 25.1, later than the pip most interpreters bring.
define create_venv
@test -n "$(PYTHON)" || { echo "napari-xcebra needs Python 3.11 or newer, and none was found: install one, or name it with 'make PYTHON=/path/to/python3.11'." >&2; exit 1; }
$(PYTHON) -m venv $(1)
$(1)/bin/python -m pip install $(PIP_FLAGS) --upgrade 'pip>=25.1'
endef

system:  ## the system libraries Qt and a virtual display need (Debian, Ubuntu)
	@.ci/system-packages "$(PYTHON)" $(SYSTEM_PACKAGES)

clean:  ## remove environments, caches and built files
	rm -rf $(VENV) $(BENCH_VENV) $(PYSIDE_VENV) $(WHEEL_VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
