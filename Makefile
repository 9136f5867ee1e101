# `make run` and `make test` each work alone on a fresh machine with python3 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: run test test-fast test-plain test-bounds test-firmware test-clients test-hosts test-llk test-llk-all test-llk-stock test-ttnn test-ttnn-all test-ttnn-models lint types docs docs-version notebooks dist test-sanitizers bench conformance warm clean

# The main job: a matrix multiplication on a generated input, through unpack, math and pack.
run: $(STAMP)
	$(BIN)/bhemu run examples/matmul.py

# The test suite, compiled. Handlers are compiled first, on all processors, so that tests do not compile one by one.
test: $(STAMP) warm
	$(BIN)/python -m pytest -n 2

# For the loop of edit and try: the first vectors of each family, the quick unit tests of the machine, the examples.
test-fast: $(STAMP)
	$(BIN)/bhemu conformance --limit 50
	$(BIN)/python -m pytest -n 2 -m 'not slow' --hypothesis-profile=fast tests/examples tests/formats tests/isa \
		tests/pairs tests/riscv tests/tensix tests/tile tests/test_*.py

# All conformance vectors and the quick unit tests with Numba disabled: the same text runs as plain Python.
test-plain: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests -m plain -n auto

# The conformance suite, and the tests of tile, cores and chip, with bounds checks in the compiled code.
test-bounds: $(STAMP)
	NUMBA_BOUNDSCHECK=1 $(BIN)/bhemu warm
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 tests/conformance tests/tile tests/riscv tests/chip

# All Blackhole firmware sets of the ttnn wheel boot and run kernels, and the image of tt-burnin runs; both are fetched once,
# with pip.
test-firmware: $(STAMP)
	$(BIN)/python -m pytest -m firmware -rs tests/loader/test_firmware_wheel.py tests/loader/test_burnin.py

# The unmodified tt-exalens, tt-umd and ttnn, which pip fetches once, on the C library that `bhemu library` makes.
test-clients: $(STAMP) warm
	$(BIN)/python -m pytest -m clients -rs tests/clients

# Clusters in several processes, and on two machines that the kernel makes, with mpi4py and Open MPI, which pip fetches.
test-hosts: $(STAMP) warm
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[hosts]'
	$(BIN)/python -m pytest -rs tests/hosts tests/capi/test_library_workers.py tests/capi/test_library_links.py

# Tenstorrent's LLK test suite on bhemu: five of each test of unpack, math, pack and matrix multiplication; or of all tests for
# Blackhole, and each operation of the vector unit (an hour or more, where kernels are compiled for the first time). Both with
# Tenstorrent's compiler; test-llk-stock is what the stock compiler can compile. Need pip and a C compiler, the last one the
# stock RISC-V compiler, and say so when one is missing. On Linux, PIP_EXTRA_INDEX_URL may name PyTorch's index of CPU builds,
# which are much smaller.
test-llk: $(STAMP) warm
	$(BIN)/python -m tests.llk.run_suite --first

test-llk-all: $(STAMP) warm
	$(BIN)/python -m tests.llk.run_suite

test-llk-stock: $(STAMP) warm
	$(BIN)/python -m tests.llk.run_suite --stock

# Operations of the unmodified ttnn against torch, with the vendor's compiler, which pip fetches too: one case in ten, drawn
# by the number of commits, as many as there is time for; or all (hours, where kernels are compiled for the first time). Both
# with either kind of dispatch.
test-ttnn: $(STAMP) warm
	$(BIN)/python -m tests.ttnn.run_sweep --tenth --minutes 6 --may-end-early

test-ttnn-all: $(STAMP) warm
	$(BIN)/python -m tests.ttnn.run_sweep

# The models of examples/ttnn, compared with torch, which pip fetches once; device print, watcher, asserts and inspector.
test-ttnn-models: $(STAMP) warm
	$(BIN)/python -m pytest -m models -rs tests/clients

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# The site, with the executed notebooks of its pages in site/notebooks.
docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python tools/notebooks.py site/notebooks

notebooks: $(VENV)/installed-docs
	$(BIN)/python tools/notebooks.py --check

# The site as one version among others, on the local branch `site`; nothing is pushed.
docs-version: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mike deploy --branch site --update-aliases \
		$$($(BIN)/python -c 'import importlib.metadata as m; print(m.version("bhemu").rpartition(".")[0])') latest

# A release: wheel, source archive and bill of materials, built twice and compared; the wheel is used without a compiler.
dist: $(VENV)/installed-release
	$(BIN)/python tools/build_release.py
	$(BIN)/python tools/check_wheel.py dist/bhemu-*.whl
	$(BIN)/python -m pytest -rs tests/release

# The C part of the C library with address and undefined-behaviour sanitizers.
test-sanitizers: $(STAMP) warm
	$(BIN)/python tools/sanitized.py

bench: $(STAMP)
	$(BIN)/bhemu bench

conformance: $(STAMP) warm
	$(BIN)/bhemu conformance

# Compile every instruction into the cache.
warm: $(STAMP)
	$(BIN)/bhemu warm

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $@

$(VENV)/installed-docs: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --group docs
	touch $@

$(VENV)/installed-release: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --group release
	touch $@

clean:
	rm -rf $(VENV) site build dist
