# Two commands matter: `make demo` and `make test`. Both set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE $(shell find src -type f \
	\( -name '*.py' -o -name '*.pyi' -o -name '*.cpp' -o -name '*.h' -o -name '*.html' \
	-o -name '*.css' -o -name '*.js' \))
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: help demo docs test lint format bench wheel clean

help:
	@echo "make demo    build, install into .venv, show the main job in a temporary folder"
	@echo "make test    build, install into .venv, run all tests"
	@echo "make lint    ruff and mypy          make format  let ruff rewrite"
	@echo "make docs    write what the documentation says about the code; draw missing pictures"
	@echo "make bench   lowland beside its peers (long; wants a quiet machine)"
	@echo "make wheel   a wheel in dist/       make clean   remove what was made"

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install --group build
	touch $@

# Built inside .venv, without isolation: a second build compiles only what has changed.
$(VENV)/.installed: $(VENV)/.base $(SOURCES)
	$(PIP) install --no-build-isolation .
	touch $@

$(VENV)/.test: $(VENV)/.base pyproject.toml
	$(PIP) install --group test
	touch $@

$(VENV)/.lint: $(VENV)/.base pyproject.toml
	$(PIP) install --group lint
	touch $@

$(VENV)/.bench: $(VENV)/.base pyproject.toml
	$(PIP) install --group bench
	touch $@

demo: $(VENV)/.installed
	@$(BIN)/python examples/demo.py

docs: $(VENV)/.installed
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_pages.py
	$(BIN)/python docs/make_stub.py

test: $(VENV)/.installed $(VENV)/.test
	$(BIN)/python -m pytest tests --pyargs lowland -n auto --dist worksteal $(ARGS)

lint: $(VENV)/.installed $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(VENV)/.installed $(VENV)/.bench
	@for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

wheel:
	$(PYTHON) -m pip wheel --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
