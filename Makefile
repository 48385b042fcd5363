# Everything runs in .venv, which `make setup` builds and every other target builds when it is missing or old.

BIN := .venv/bin
READY := .venv/ready

.PHONY: help setup demo test check hosts soak asan format peers clean

help:
	@echo 'make demo    start the default mesh, send and receive, lose a router, clean up'
	@echo 'make test    make check, and all other tests (those that need another broker or client skip, and say how to get it)'
	@echo 'make hosts   nodes in containers that hang, crash and stop hearing each other: for root, and brings a Docker Engine'
	@echo 'make check   lint, types, dependency arrows, unit tests'
	@echo 'make soak    nine minutes more of the random lives of this revision; docs/proof/soak.md says how far they are'
	@echo 'make asan    unit tests and simulation with proton and the compiled parts under AddressSanitizer'
	@echo 'make peers   install what some tests talk to: brokers and clients of others, a browser'
	@echo 'make format  put the sources in the form that make check wants'

setup: $(READY)

COMPILED := $(shell find wire router broker mesh -name '*.pyx' -o -name '*.pxd')

$(READY): tools/setup.sh setup.cfg setup.py pyproject.toml $(COMPILED)
	@bash tools/setup.sh
	@touch $@

demo: $(READY)
	@$(BIN)/amqpmesh demo

# Most of these wait for processes; those that measure have the machine to themselves.
test: check
	$(BIN)/pytest -n 3 --dist loadgroup -m "not quiet" --ignore=mesh_tests/unit --ignore=mesh_tests/sim $(ARGS)
	$(BIN)/pytest -m quiet --ignore=mesh_tests/unit --ignore=mesh_tests/sim $(ARGS)

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n auto mesh_tests/unit mesh_tests/sim $(ARGS)

# Beside an engine of their own, which nobody else sees; without one they skip.
hosts: $(READY)
	@bash tools/engine.sh $(BIN)/pytest -n 2 --dist loadgroup mesh_tests/containers $(ARGS)

soak: $(READY)
	@$(BIN)/python -m mesh_tests.soak $(ARGS)

asan: $(READY)
	@bash tools/asan.sh $(ARGS)

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

peers:
	@bash tools/peers.sh
	@$(MAKE) --no-print-directory -f mesh_tests/interop/peers.mk

clean:
	rm -rf .venv .venv-asan .peers build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
