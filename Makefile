# Every target sets up .venv by itself: a fresh machine needs Python >= 3.11, git and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo serve test test-all collect lint lines bench digests mutants docs package reproduce benchmarks coverage clean

demo: $(READY)
	$(BIN)/simplexplore demo

serve: $(READY)
	$(BIN)/python examples/dashboard.py

# Tests start many processes: bytecode is kept, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

# Tests of a file share what is made once for them: a server, a browser, results. Many tests wait
# for something: four processes keep two cores busy, three did not. Files in conftest.py's order.
PYTEST := $(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder

# Each process keeps to one core: threads of linear algebra would wait for each other, busily.
test test-all coverage: export OPENBLAS_NUM_THREADS := 1

test: $(READY)
	$(PYTEST)

# Find all tests: leaves bytecode, which several processes would otherwise make at the same time.
collect: $(READY)
	$(BIN)/pytest --collect-only -q > /dev/null

# All tests, and more examples of Hypothesis. Nightly.
test-all: export SIMPLEXPLORE_NIGHTLY := 1
test-all: $(READY)
	$(PYTEST)

# Which lines the tests run, by room; the contract of samplers runs the kernels as Python. Nightly.
coverage: $(READY)
	$(PYTEST) --cov --cov-report=json:coverage.json
	$(BIN)/python tests/rooms.py coverage.json

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# How large each room is, and what is too large.
lines: $(READY)
	$(BIN)/python tests/rooms.py

# BASE=<commit> puts the figures of another commit beside ours, OUT=<file> keeps the table.
bench: $(READY)
	$(BIN)/python benchmarks/figures.py $(if $(BASE),--base $(BASE)) $(if $(OUT),--out $(OUT))

# Runs BASE=<commit> and this one, and names every case that differs; GROUPS="bounds studies", JOBS=2.
digests: $(READY)
	$(BIN)/python benchmarks/digests.py $(BASE) $(if $(GROUPS),--groups $(GROUPS)) $(if $(JOBS),--jobs $(JOBS))

# Break lines one by one and see whether a test notices; takes an hour or so.
mutants: $(READY)
	$(BIN)/python benchmarks/mutants.py

# The whole paper, or PARTS of it; RUNS=50 for a quick look instead of the paper's number of runs;
# OUT=<folder> for the report.
reproduce: export OPENBLAS_NUM_THREADS := 1
reproduce: $(READY)
	$(BIN)/python -m paper $(PARTS) $(if $(RUNS),--runs $(RUNS)) $(if $(OUT),--out $(OUT))

# Samplers of ours and of the literature on published instances; RUNS=1000 for smaller errors.
benchmarks: $(READY)
	$(BIN)/python benchmarks/field.py $(if $(RUNS),--runs $(RUNS)) $(if $(OUT),--out $(OUT))

# What a release would be: both archives, each installed into an empty environment of its own.
package: $(READY)
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	for archive in dist/*.whl dist/*.tar.gz; do \
		rm -rf dist/empty && $(PYTHON) -m venv --without-pip dist/empty \
		&& $(BIN)/python -m pip --python dist/empty/bin/python install $(QUICKLY) "$$archive" \
		&& dist/empty/bin/simplexplore --version \
		&& dist/empty/bin/simplexplore bound examples/meal.toml > /dev/null || exit 1; \
	done
	rm -rf dist/empty

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv site build dist demo-output reproduction-output dashboard.db dashboard.db-*
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* coverage.json
	find src paper tests benchmarks addons -name __pycache__ -type d -prune -exec rm -rf {} +

# Most files are never imported; the bytecode of those that are is kept when they are.
QUICKLY := --quiet --disable-pip-version-check --no-compile

$(READY): pyproject.toml requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "simplexplore needs Python >= 3.11; set PYTHON=... to choose one")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(QUICKLY) -r requirements-dev.txt
	$(BIN)/python -m pip install $(QUICKLY) --no-deps --no-build-isolation --editable .
	touch $@
