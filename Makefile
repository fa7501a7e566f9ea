# Two commands do everything: `make chat` to talk to it, `make test` to check it.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input

.PHONY: chat test coverage crash-test crash-test-short lint format bench texts lock lock-check release-check clean help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/ —/'

chat: $(VENV)/.main  ## talk to the sommelier in this terminal
	@$(BIN)/sommelier chat

test: $(VENV)/.dev  ## run every test
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto --dist worksteal

crash-test: $(VENV)/.dev  ## kill processes, restart databases, count what is lost (25 minutes)
	@$(BIN)/python -m tests.crash

crash-test-short: $(VENV)/.dev  ## the same with fewer kills and scenarios (5 minutes)
	@$(BIN)/python -m tests.crash --kills=12

lint: $(VENV)/.dev  ## the files of languages/, ruff, mypy --strict, import-linter
	@$(BIN)/python -m tests.texts check
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(VENV)/.dev  ## rewrite the code in the project's style
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev  ## measure turns beside other libraries, durability, streaming, searches, attacks, cellars
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m benchmarks.first_request
	@$(BIN)/python -m benchmarks.durability
	@$(BIN)/python -m benchmarks.streaming
	@$(BIN)/python -m benchmarks.retrieval
	@$(BIN)/python -m benchmarks.search
	@$(BIN)/python -m benchmarks.attacks
	@$(BIN)/python -m benchmarks.cellar

texts: $(VENV)/.dev  ## bring what is new in languages/messages.pot into every catalogue, to be translated
	@$(BIN)/python -m tests.texts

UV_COMPILE = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --quiet $(UPGRADE)

lock: $(VENV)/.release  ## compile requirements/*.txt from pyproject.toml (UPGRADE=--upgrade: newest versions)
	@$(UV_COMPILE) pyproject.toml --group build -o requirements/main.txt
	@$(UV_COMPILE) pyproject.toml --group build --group dev -c requirements/main.txt -o requirements/dev.txt
	@$(UV_COMPILE) --group pyproject.toml:release -c requirements/dev.txt -o requirements/release.txt

lock-check: lock  ## fail if requirements/*.txt do not follow from pyproject.toml
	@git diff --exit-code --stat requirements || { echo "requirements/*.txt were stale: commit what make lock wrote." >&2; exit 1; }

coverage: $(VENV)/.dev  ## run every test and say which lines none reaches (dist/coverage.xml)
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term --cov-report=xml:dist/coverage.xml

release-check: $(VENV)/.release  ## build wheel, sdist and image, install and try each
	@.ci/release-check

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with its venv module is needed and was not found. On Debian and Ubuntu: apt install python3 python3-venv" >&2; exit 1; }
	@echo "Setting up (once) ..." >&2
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.main: requirements/main.txt pyproject.toml | $(BIN)/python
	@$(PIP_INSTALL) --require-hashes -r requirements/main.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.main
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.release: requirements/release.txt $(VENV)/.dev
	@$(PIP_INSTALL) --require-hashes -r requirements/release.txt
	@touch $@
