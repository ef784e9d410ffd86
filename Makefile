# Each target sets up whatever it needs first. CHAPTERS="chapters/01_model.ipynb" restricts
# `notebooks`, PAGES="chapters/01_model" restricts `screenshots` and `pdf`,
# ONLY=alignment restricts `bench`, `check` and `mutants`, ONLY="name name" restricts `reproduce`,
# PROFILE=quick makes it small,
# EXECUTOR=tcp://host:8786 sends it to a Dask cluster.
# LIVE=0 leaves Python for the reader's browser out of `book` and `test`.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
PORT ?= 8000
SEED ?= 1
PROFILE ?= full
ROOMS := needle utils $(filter-out tests/book tests/site tests/cluster tests/conftest.py tests/physics.toml,$(wildcard tests/*))
export OMP_NUM_THREADS = 1
export OPENBLAS_NUM_THREADS = 1
export PYTHONUTF8 = 1
# where Python 3.11 cannot read a path that is not ASCII from its own .pth file
ifneq ($(filter C POSIX,$(LC_ALL)),)
export LC_ALL = C.UTF-8
endif
# packages are installed uncompiled and compiled when first used, which is in vain if not kept
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := book
.PHONY: bags book lab serve test check mutants physics faults fuzz threads sbom notebooks problems slides lock lower-bounds upper-bounds reproduce fresh-seeds links picture bench pdf slow-line screenshots clean distclean

# what pages take from elsewhere is fetched while the chapters are executed
book: .venv/book
	@$(BIN)/python -m scripts.book.browser_assets
	@$(BIN)/python -m scripts.book.live_assets & fetching=$$!; \
	  $(BIN)/python -m scripts.book.build_book --execute && wait $$fetching && $(BIN)/python -m scripts.book.build_book

lab: .venv/book .venv-lab/complete
	@$(BIN)/python -m scripts.book.lab

serve: book
	@echo "http://localhost:$(PORT)  (Ctrl-C stops)"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

test: .venv/test
	@$(BIN)/python -m scripts.check.run_tests

check: .venv/test
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy && $(BIN)/lint-imports
	@$(BIN)/python -m pytest -n 2 -m "not slow" $(if $(ONLY),$(foreach r,$(ONLY),tests/$(r) needle/$(r)),$(ROOMS))

# mutmut breaks a room in small ways; `physics` makes constants a few per cent wrong
# what is broken on purpose: kills, damaged files, registries that fail, full disks; the long fuzz
faults: .venv/test
	@$(BIN)/python -m scripts.check.faults

fuzz: .venv/test
	@FUZZ=150 NEEDLE_SEED=$(SEED) $(BIN)/python -m pytest -n 2 --junitxml=_build/reports/fuzz.xml tests/fuzz

# what the wheel needs and what the site ships, part by part, in CycloneDX
sbom: .venv/book
	@$(BIN)/python -m scripts.book.live_assets
	@$(BIN)/python -m scripts.run.sbom

threads: .venv/book
	@$(BIN)/python -m scripts.check.threads $(CHAPTERS)

mutants: .venv/test
	@$(BIN)/python -m scripts.check.mutants $(ONLY)

physics: .venv/test
	@$(BIN)/python -m scripts.check.physics $(ONLY)

notebooks: .venv/book
	@$(BIN)/python -m scripts.book.run_notebooks $(CHAPTERS)

lock: .venv/book
	@$(BIN)/python -m scripts.run.lock

lower-bounds: .venv/book
	@$(BIN)/python -m scripts.check.lower_bounds

upper-bounds: .venv/book
	@$(BIN)/python -m scripts.check.lower_bounds newest

reproduce: bags
	@$(BIN)/python -m scripts.run.reproduce --profile $(PROFILE) $(if $(EXECUTOR),--executor $(EXECUTOR)) $(ONLY)

bags: .venv/book
	@$(BIN)/python -m scripts.run.real_bags

fresh-seeds: .venv/test
	@NEEDLE_SEED=$(SEED) $(BIN)/python -m pytest -n 2 --junitxml=_build/reports/fresh-seeds.xml $(ROOMS)

links: .venv/book
	@$(BIN)/python -m scripts.book.build_book --links

picture: .venv/book
	@$(BIN)/python -m scripts.book.landing_figure

bench: .venv/book
	@$(BIN)/python -m benchmarks $(ONLY)

pdf: .venv/test book
	@$(BIN)/python -m scripts.book.pdf $(PAGES)

# what teachers hand out: sets without solutions (notebooks, PDF), and slides as PDF
problems: .venv/test
	@$(BIN)/python -m scripts.book.browser_assets
	@$(BIN)/python -m scripts.book.problems $(ONLY)

slides: .venv/test book
	@$(BIN)/python -m scripts.book.slides

slow-line: .venv/test book
	@$(BIN)/python -m scripts.check.slow_line
	@$(BIN)/python -m scripts.check.explorer_speed

screenshots: .venv/test book
	@$(BIN)/python -m scripts.check.screenshots $(PAGES)

clean:
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-lower .venv-lab _vendor *.egg-info

# A stamp exists only after an installation that ran to its end, so an interrupted one is repeated.
# Everything comes from a lock with hashes: by uv, or by pip where uv is not to be had or, since it
# does not read pip's settings, finds no packages. The checkout itself takes nothing along.
PIP = -m pip install --quiet --quiet --disable-pip-version-check --no-compile
LOCKED = --require-hashes --only-binary :all:
install = { test -x $(BIN)/uv && $(BIN)/uv pip install --quiet --python $(1) $(LOCKED) -r $(2); } \
  || $(1) $(PIP) $(LOCKED) -r $(2)

.venv/book: locks/book.txt pyproject.toml | .venv/python
	@echo "installing the packages of the book"
	@$(call install,$(BIN)/python,locks/book.txt)
	@$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/test: locks/test.txt .venv/book
	@echo "installing the packages of the tests"
	@$(call install,$(BIN)/python,locks/test.txt)
	@touch $@

.venv-lab/complete: locks/lab.txt | .venv/python
	@echo "installing JupyterLab"
	@$(BIN)/python -m venv --clear .venv-lab
	@$(call install,.venv-lab/bin/python,locks/lab.txt)
	@touch $@

.venv/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/it"; exit 1; }
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python $(PIP) $(LOCKED) -r locks/uv.txt || echo "uv is not to be had here: pip will do"
	@touch $@
