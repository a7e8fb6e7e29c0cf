# Two commands matter: `make demo` and `make test`. Both set up .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := $(VENV)-oldest
WHEELS := build/wheels
SANITIZED := build/sanitize
CXX ?= c++
NATIVE := pyproject.toml CMakeLists.txt $(shell find src -type f \( -name '*.cpp' -o -name '*.h' \))
SOURCES := $(NATIVE) README.md LICENSE $(shell find src -type f \( -name '*.py' -o -name '*.pyi' \
	-o -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.csv' \))
PIP := -m pip --quiet --disable-pip-version-check
PYTEST := -m pytest -n auto --dist worksteal

# Compiled test modules are kept: to rewrite their assertions takes 10 s in every process.
export PYTHONDONTWRITEBYTECODE :=

# The inner loop: the architecture tests, the contract of every method, the kernels and the core.
CHECKED := tests/contract/test_parameters.py tests/contract/test_fitting.py \
	tests/contract/test_new_rows.py tests/contract/test_bad_data.py tests/test_architecture.py \
	tests/base tests/native/common tests/native/products tests/native/neighbors tests/native/graphs \
	tests/datasets tests/reference/linear

# The editable install, if there is one, is left alone by what runs on either of the two.
INSTALLED := $(VENV)/$(if $(wildcard $(VENV)/.editable),.editable,.installed)

# What depends on the versions of libraries, and what reaches the kernels with odd data.
VERSIONS := $(patsubst %,tests/contract/test_%.py,sklearn company bad_data fitting new_rows \
	malformed_sparse selectors)
MEMORY := tests/native $(patsubst %,tests/contract/test_%.py,bad_data malformed_sparse \
	hostile_models)
# What depends on rounding, for other processors: kernels of OpenBLAS and our own instruction set.
NUMERICAL := tests/reference tests/contract tests/docs
PROCESSORS := Haswell-auto Nehalem-baseline
# A part of the tests, such as PART=2/5.
SOME := $(if $(PART),--part $(PART))

.PHONY: help demo dev check docs test test-slow test-oldest sanitize mutants fuzz lint format bench \
	wheel clean

help:
	@echo "make demo    build, install into .venv, show the main job in a temporary folder"
	@echo "make dev     an editable install in .venv: edits of Python files need no second install"
	@echo "make check   a representative part of the tests on the editable install (about a minute)"
	@echo "make test    build, install into .venv, run all tests but the slow ones (about 10 minutes)"
	@echo "make test-slow  the slow tests and other processors (half an hour); PART=0/5: a fifth"
	@echo "make test-oldest  what depends on versions, with the oldest supported libraries"
	@echo "make sanitize  the kernels and odd data with address and undefined-behavior sanitizers"
	@echo "make fuzz MINUTES=10  random calls, files and command lines; SEED=1 AREAS=api,files"
	@echo "make mutants  plant one error at a time; every one must be noticed by a test (minutes)"
	@echo "make mutants N=200 SEED=1 ROOM=mds  random errors of syntax trees, and those that survive"
	@echo "make lint    ruff and mypy          make format  let ruff rewrite"
	@echo "make docs    write what the documentation says about the code; draw missing pictures"
	@echo "make bench   lowland beside its peers (long; wants a quiet machine)"
	@echo "make wheel   a wheel in dist/       make clean   remove what was made"

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install --upgrade "pip>=25.1"
	$(BIN)/python $(PIP) install --group build
	touch $@

# Built inside .venv, without isolation: a second build compiles only what has changed. Every
# environment installs this one wheel.
$(WHEELS)/.built: $(VENV)/.base $(SOURCES)
	rm -rf $(WHEELS)
	$(BIN)/python $(PIP) wheel --no-build-isolation --no-deps --wheel-dir $(WHEELS) .
	touch $@

$(VENV)/.installed: $(WHEELS)/.built
	$(BIN)/python $(PIP) install $(WHEELS)/*.whl
	$(BIN)/python $(PIP) install --no-deps --force-reinstall $(WHEELS)/*.whl
	rm -f $(VENV)/.editable
	touch $@

# Python files are imported from src/; the kernels are compiled again when their sources change.
$(VENV)/.editable: $(VENV)/.base $(NATIVE)
	$(BIN)/python $(PIP) install --no-build-isolation --config-settings=editable.rebuild=false -e .
	rm -f $(VENV)/.installed
	touch $@

$(VENV)/.test: $(VENV)/.base pyproject.toml
	$(BIN)/python $(PIP) install --group test
	touch $@

$(VENV)/.lint: $(VENV)/.base pyproject.toml
	$(BIN)/python $(PIP) install --group lint
	touch $@

$(VENV)/.bench: $(VENV)/.base pyproject.toml
	$(BIN)/python $(PIP) install --group bench
	touch $@

$(OLDEST)/.installed: $(WHEELS)/.built
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) install --upgrade "pip>=25.1"
	$(OLDEST)/bin/python $(PIP) install --group oldest $(WHEELS)/*.whl
	$(OLDEST)/bin/python $(PIP) install --no-deps --force-reinstall $(WHEELS)/*.whl
	touch $@

demo: $(VENV)/.installed
	@$(BIN)/python examples/demo.py

dev: $(VENV)/.editable $(VENV)/.test

check: dev
	$(BIN)/python $(PYTEST) $(CHECKED) $(ARGS)

docs: $(INSTALLED)
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_pages.py
	$(BIN)/python docs/make_stub.py

test: $(VENV)/.installed $(VENV)/.test
	$(BIN)/python $(PYTEST) tests --pyargs lowland --budget check $(ARGS)

test-slow: $(VENV)/.installed $(VENV)/.test
	$(BIN)/python $(PYTEST) tests -m slow $(SOME) $(ARGS)
	for p in $(PROCESSORS); do \
		OPENBLAS_CORETYPE=$${p%-*} LOWLAND_INSTRUCTION_SET=$${p#*-} \
		$(BIN)/python $(PYTEST) $(NUMERICAL) $(SOME) $(ARGS) || exit 1; \
	done

test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python $(PYTEST) $(VERSIONS) $(ARGS)

# Kernels that end the process at the first access outside of a buffer. The sanitizer has to be in
# the process before Python allocates anything, and libstdc++ with it, so both are preloaded.
$(SANITIZED)/.built: $(VENV)/.base $(SOURCES)
	rm -rf $(SANITIZED)/site
	$(BIN)/python $(PIP) install --no-build-isolation --no-deps --target $(SANITIZED)/site \
		--config-settings=cmake.define.LOWLAND_SANITIZE=ON \
		--config-settings=cmake.define.LOWLAND_ONE_SET=ON \
		--config-settings=build-dir=$(SANITIZED)/cmake .
	touch $@

sanitize: $(SANITIZED)/.built $(VENV)/.installed $(VENV)/.test
	PYTHONPATH=$(SANITIZED)/site PYTHONMALLOC=malloc \
		LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		$(BIN)/python $(PYTEST) $(MEMORY) $(SOME) $(ARGS)

fuzz: $(VENV)/.installed $(VENV)/.test
	$(BIN)/python tests/fuzz --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) \
		$(if $(AREAS),--areas $(AREAS)) $(ARGS)

# The wheel, because an editable install would be imported instead of the copies with errors.
mutants: $(VENV)/.installed $(VENV)/.test
	$(BIN)/python tests/mutants.py $(if $(N),--random $(N)) $(if $(SEED),--seed $(SEED)) \
		$(if $(ROOM),--room $(ROOM)) $(ARGS)

lint: $(INSTALLED) $(VENV)/.lint
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
	rm -rf $(VENV) $(OLDEST) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
