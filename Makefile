# Everything runs in .venv, which `make setup` builds and every other target builds when it is missing or old.

BIN := .venv/bin
READY := .venv/ready

.PHONY: help setup demo test check lint unit sim live pythons hosts soak figures asan dist format peers clean

help:
	@echo 'make demo    start the default mesh, send and receive, lose a router, clean up'
	@echo 'make test    make check and make live'
	@echo 'make live    tests of processes (those that need another broker or client skip, and say how to get it)'
	@echo 'make hosts   nodes in containers that hang, crash and stop hearing each other: for root, and brings a Docker Engine'
	@echo 'make lint    style, types, stubs and import contracts, in less than a minute'
	@echo 'make check   make lint, make unit and make sim: style, unit tests and simulation'
	@echo 'make dist    build the source distribution and the wheels into dist/'
	@echo 'make pythons a wheel for each of Python 3.11 to 3.13 that the machine has, and with it unit tests, simulation, a bare Debian'
	@echo 'make soak    nine minutes more of random lives of this revision, with seeds of its own; docs/proof/soak.md has a row of each'
	@echo 'make figures measure every figure of docs/reference/figures.md again: an hour of an idle machine'
	@echo 'make asan    unit tests and simulation with proton and the compiled parts under AddressSanitizer'
	@echo 'make peers   install what some tests talk to: brokers and clients of others, a browser, Prometheus, nginx'
	@echo 'make format  put the sources in the form that make check wants'

setup: $(READY)

SOURCES := $(wildcard addressing wire recording router broker linklogs mesh mesh_tests tools)
COMPILED := $(shell find $(SOURCES) -name '*.pyx' -o -name '*.pxd')

$(READY): tools/setup.sh tools/proton.sh setup.cfg setup.py pyproject.toml $(COMPILED)
	@bash tools/setup.sh
	@touch $@

demo: $(READY)
	@$(BIN)/amqpmesh demo

# One more than there are cores: some wait for a disk, or for a clock.
WORKERS := $(shell echo $$(($$(nproc) + 1)))

# Compiled code that hangs hears no signal: only faulthandler's own thread ends its worker.
HANGING := -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

# Each of these runs, whatever became of those before it: the last lines say how each of them ended.
LINTS := '$(BIN)/ruff check' '$(BIN)/ruff format --check' '$(BIN)/cython-lint $(SOURCES)' '$(BIN)/mypy' \
	'tools/stubs.sh $(BIN)/python' '$(BIN)/python tools/contracts.py'
UNIT := '$(BIN)/pytest -q -n $(WORKERS) $(HANGING) mesh_tests/unit $(ARGS)'
SIM := '$(BIN)/pytest -q -n $(WORKERS) $(HANGING) mesh_tests/sim $(ARGS)'
OTHERS := --ignore=mesh_tests/unit --ignore=mesh_tests/sim --ignore=mesh_tests/wheel $(ARGS)
# Most of the other tests wait for processes; those that measure have half of the machine, or the machine, to themselves.
GROUPED := --dist loadgroup --no-loadscope-reorder
LIVE := '$(BIN)/pytest -n 3 $(GROUPED) -m "not quiet and not alone" $(OTHERS)' \
	'$(BIN)/pytest -n 2 $(GROUPED) -m quiet $(OTHERS)' '$(BIN)/pytest -m alone $(OTHERS)'

# Parts that WITHOUT names are left out, for a verification that has run them before: make check WITHOUT='lint unit'
part = $(if $(filter $(1),$(WITHOUT)),,$(2))
CHECKS = $(call part,lint,$(LINTS)) $(call part,unit,$(UNIT)) $(call part,sim,$(SIM))

lint: $(READY)
	@bash tools/stages.sh $(LINTS)

unit: $(READY)
	@bash tools/stages.sh $(UNIT)

sim: $(READY)
	@bash tools/stages.sh $(SIM)

live: $(READY)
	@bash tools/stages.sh $(LIVE)

check: $(READY)
	@bash tools/stages.sh $(CHECKS)

test: $(READY)
	@bash tools/stages.sh $(CHECKS) $(LIVE)

# For the Python of .venv, or another one: make dist PYTHON=python3.13
dist: $(READY)
	@bash tools/dist.sh $(or $(PYTHON),$(BIN)/python)

# On each Python that amqpmesh is for, if the machine has it.
pythons: $(READY)
	@bash tools/pythons.sh $(ARGS)

# Beside an engine of their own, which nobody else sees; without one they skip.
hosts: $(READY)
	@bash tools/engine.sh $(BIN)/pytest -n 2 --dist loadgroup mesh_tests/containers $(ARGS)

soak: $(READY)
	@$(BIN)/python -m mesh_tests.soak $(ARGS)

figures: $(READY)
	@$(BIN)/python -m mesh_tests.bench.figures $(ARGS)

asan: $(READY)
	@bash tools/asan.sh $(ARGS)

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

peers:
	@bash tools/peers.sh
	@$(MAKE) --no-print-directory -f mesh_tests/interop/peers.mk

# What a mesh keeps (.amqpmesh, data) stays.
clean:
	rm -rf .venv .venv-* .peers .soak build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	rm -rf .hypothesis
	find $(SOURCES) -name '*.so' -delete
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +
