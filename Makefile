# make ablation    set up, then run experiments/first_look.py: three arms, three seeds, a report (ARGS='--steps 5' adds flags)
# make test        set up, check, then all tests that need no GPU
# make test-fast   set up, then the tests that start no process and train nothing (about a minute and a half), for while you edit
# make test-gpu    set up, then the tests that need an NVIDIA GPU
# make check       set up, then ruff, mypy and the import contract
# make setup       .venv with the versions of constraints.txt, and what the tests need (make ablation does without that)
# make clean       remove .venv and the tools' caches (runs/ stays)
#
# PYTHON=python3.12     the interpreter that .venv is made with (3.11 or newer)
# TORCH_INDEX=URL       an additional package index for torch, e.g. PyTorch's index of CPU builds
# UV=                   pip installs, although uv is there
# TORCH=torch==VERSION  another build of torch than the one chosen below; of several, the first that pip can install

PYTHON ?= python3
TORCH_INDEX ?=
JOBS ?= auto
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed
STAMP := $(VENV)/.installed-dev

# The default Linux build of torch brings gigabytes of CUDA, which only a machine with an NVIDIA GPU can use; it is the second
# choice where pip knows no CPU build, but not where TORCH_INDEX was given to say who has one.
HAS_GPU := $(shell test -e /proc/driver/nvidia/version && echo yes || nvidia-smi -L 2>/dev/null | grep -q GPU && echo yes)
ifeq ($(HAS_GPU)$(filter-out Linux,$(shell uname -s)),)
TORCH ?= torch==2.13.0+cpu $(if $(TORCH_INDEX),,torch==2.13.0)
EXTRAS :=
else
TORCH ?= torch==2.13.0
EXTRAS := [gpu]
# What the preset for GPUs trains; POLICY= with ARGS='--model small' does without it.
POLICY := $(if $(HAS_GPU),runs/policy)
endif

.PHONY: ablation test test-fast test-gpu check setup clean

ablation: $(RUN_STAMP) $(POLICY)
	$(BIN)/python -m experiments.first_look $(ARGS)

runs/policy: | $(RUN_STAMP)
	$(BIN)/python -m experiments.cold_start --size medium
	@touch $@

# Many small tensors: one thread per test process is faster than all of them fighting for the cores.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test: check
	$(PYTEST) -m "not gpu" $(ARGS)

test-fast: setup
	$(PYTEST) -m "not gpu and not slow" $(ARGS)

test-gpu: setup
	$(BIN)/python -m pytest -m gpu $(ARGS)

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(STAMP)

# uv is several times as fast as pip. It does not read pip's configuration, so pip goes on where uv does not find a package.
UV ?= $(shell command -v uv 2>/dev/null)
PIP := $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt
install = $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python -c constraints.txt $(1) 2>/dev/null ||) $(PIP) $(1)
# Most of an installation's work is to compile Python's files, for which pip takes one core. Some packages hold files of no use.
compiled = $(BIN)/python -m compileall -q -j $$(nproc) $(VENV)/lib >/dev/null 2>&1 || true

$(RUN_STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "rlkernel needs Python 3.11 or newer, and '$(PYTHON)' is not that: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "making $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	@for torch in $(TORCH); do \
	  echo "installing $$torch into $(VENV)"; \
	  $(call install,$(if $(TORCH_INDEX),--extra-index-url '$(TORCH_INDEX)') "$$torch") && exit; \
	  echo "pip cannot install $$torch here"; \
	done; \
	echo "torch could not be installed. If pip did not find it, name an index that has it, e.g. PyTorch's index of CPU" \
	  "builds: make TORCH_INDEX=URL ... (the address is on PyTorch's installation page)" >&2; exit 2
	@echo "installing rlkernel and its other dependencies"
	@$(call install,-e '.$(EXTRAS)')
	@$(compiled)
	@touch $@

$(STAMP): $(RUN_STAMP)
	@echo "installing what the tests need"
	@$(call install,-e '.[dev]')
	@$(compiled)
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
