# make demo      build everything and run the examples: one table, and every kernel's Metal text under out/
# make test      build everything and run all tests, and a quarter of those in Python once more on each route: the ways of launching on
#                a Mac, and MLX graphs
# make routes    all tests in Python on each route
# make           build everything
# make setup     only bring in what the build needs (the others do this themselves)
# make lint      formatting and lint, C++ and Python, and docs/dialects against what the sources generate
# make apple10        the same tests with the tensor operations of M5
# make least-target   the kernels of the Python tests without simdgroup matrices, SIMD-group reductions and bfloat, and with 16 KB
# make portable  the Python tests with check="portable" and three seeds: no result may depend on what Metal does not promise
# make stress    the Python tests with canonicalisation, CSE, dead-code removal and the verifiers around every pass
# make sanitize  the C++ tests and a corpus of Triton IR under AddressSanitizer and UBSan
# make float64 N=1000000 SEED=1   arithmetic of float64 bit for bit against NumPy, on that many random operands and all special ones
# make accuracy   every float32 through each approximate function, against the bounds of docs/arithmetic.md; half an hour
# make accuracy ACCURACY="exp --stride 7 --portable 3"   one function, fewer floats, on the worst device that Metal allows
# make fuzz-ttir N=20000 SEED=1   changed and drawn texts of Triton IR, each of which must compile or be refused
# make fuzz-programs N=20000 SEED=1   that many random programs against NumPy; ONLY=<number> runs one again and makes it small
# make fuzz-metal COUNT=5000 SEED=0     mutated Metal texts on the host device: none may crash or hang it
# make mlx-kernels   every kernel of the installed MLX's headers, compiled, and all families run under all checks
# make mlx-kernels MLX=CHECKOUT   the same, with the kernels that only MLX's source has
# make packages TRITON=CHECKOUT   packages from PyPI with Triton kernels, and the tutorials of a checkout of Triton, without Triton
# make pins      write requirements/*.txt anew from requirements/*.in, with hashes; needs uv
# make agx       Mesa's compiler for Apple's G13, from Debian's source package, and what it makes of the demo's kernels beside MLX's
# make spills    every kernel of the examples, of the table against MLX and of triton_metal.ops through that compiler: fails if one
#                spills that benchmarks/agx/known_spills.txt does not name, or if one that is named there does not
# make wheels    the two wheels, checked and tried in an empty environment; they are left in dist/wheels
# make clean     remove what was built (.venv stays)

.DEFAULT_GOAL := build
SHELL := bash
BUILD ?= build
PYTHON_ENV := .venv/bin
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)

ifeq ($(shell uname -s),Darwin)
  LLVM_PREFIX ?= $(shell brew --prefix 2>/dev/null)/opt/llvm@22
else
  LLVM_PREFIX ?= /usr/lib/llvm-22
endif

CONFIGURE = cmake -G Ninja -S . -Wno-dev \
  -DCMAKE_C_COMPILER=$(LLVM_PREFIX)/bin/clang -DCMAKE_CXX_COMPILER=$(LLVM_PREFIX)/bin/clang++ \
  -DCMAKE_PREFIX_PATH=$(LLVM_PREFIX) -DPython_EXECUTABLE=$(CURDIR)/$(PYTHON_ENV)/python

# The number of programs or texts of `make fuzz-programs` and `make fuzz-ttir`, and the seed.
N ?= 1000
SEED ?= 1

# What runs once under all checks of the host device.
CHECKED_TESTS = $(wildcard tests/python/test_examples_*.py) tests/python/test_atomics.py tests/python/test_memory_orders.py

LEAST_TARGET_TESTS = $(wildcard tests/python/test_kernels_*.py tests/python/test_examples_*.py) tests/python/test_atomics.py \
  tests/python/test_special_values.py tests/python/test_short_float_bits.py tests/python/test_layout_conversions.py

# The ways of launching on a Mac, and MLX graphs. How many there are is the number of shares in `make test`.
ROUTES = mps mlx mlx-in-place mlx-graph

PYTEST = TRITON_METAL_CACHE_DIR=$(CURDIR)/$(BUILD)/test-cache PYTHONPATH=python \
  $(PYTHON_ENV)/python -m pytest -q -n $(JOBS)

.NOTPARALLEL:
.PHONY: accuracy build demo test fuzz-programs fuzz-metal setup setup-tests setup-wheels lint format sanitize wheels clean
.PHONY: agx spills float64 fuzz-ttir pins routes stress least-target apple10 portable packages mlx-kernels

setup:
	@scripts/setup.sh

setup-tests:
	@scripts/setup.sh --tests

setup-wheels:
	@scripts/setup.sh --tests --wheels

$(BUILD)/build.ninja: | setup
	$(CONFIGURE) -B $(BUILD) -DCMAKE_BUILD_TYPE=Release -DTRITON_METAL_BUILD_TESTS=ON

build: setup $(BUILD)/build.ninja
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	@PYTHONPATH=python $(PYTHON_ENV)/python examples/demo.py

test: setup-tests build
	ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)
	$(PYTHON_ENV)/lit -s tests/lit --param build=$(CURDIR)/$(BUILD) --param llvm_tools=$(LLVM_PREFIX)/bin
	$(PYTEST) tests/python
	$(PYTEST) --check=all -m "not own_check" $(CHECKED_TESTS)
	share=0; for route in $(ROUTES); do share=$$((share + 1)); \
	  $(PYTEST) --route=$$route --share=$$share/$(words $(ROUTES)) -m "not own_route" tests/python || exit 1; done

# Compilation is the same on all routes: `make test` runs a quarter of each test's cases on each, and this runs all of them.
routes: setup-tests build
	for route in $(ROUTES); do $(PYTEST) --route=$$route -m "not own_route" tests/python || exit 1; done

# The results must not change: no pass may rely on what MLIR's passes have not done yet. The kernels have their own cache.
stress: setup-tests build
	TRITON_METAL_STRESS=$(or $(STRESS),1) TRITON_METAL_CACHE_DIR=$(CURDIR)/$(BUILD)/stress-cache PYTHONPATH=python \
	  $(PYTHON_ENV)/python -m pytest -q -rs -n $(JOBS) tests/python

# Matrices are multiplied by Metal 4's tensor operations.
apple10: setup-tests build
	TRITON_METAL_CACHE_DIR=$(CURDIR)/$(BUILD)/apple10-cache PYTHONPATH=python \
	  $(PYTHON_ENV)/python -m pytest -q -n $(JOBS) --target=apple10 $(LEAST_TARGET_TESTS)

# The results must not depend on what a target has.
least-target: setup-tests build
	TRITON_METAL_CACHE_DIR=$(CURDIR)/$(BUILD)/least-target-cache PYTHONPATH=python \
	  $(PYTHON_ENV)/python -m pytest -q -n $(JOBS) --least-target $(LEAST_TARGET_TESTS)

# Nor on values that Metal does not promise.
portable: setup-tests build
	for seed in 1 2 3; do \
	  $(PYTEST) --portable=$$seed -m "not own_check" tests/python || exit 1; done

float64: setup-tests build
	PYTHONPATH=python:tests/python $(PYTHON_ENV)/python -m float64_check --count $(N) --seed $(SEED)

accuracy: setup-tests build
	PYTHONPATH=python $(PYTHON_ENV)/python tests/accuracy/every_float.py $(ACCURACY)

fuzz-programs: setup-tests build
	PYTHONPATH=python:tests/python $(PYTHON_ENV)/python -m random_programs --jobs $(JOBS) $(if $(ONLY),--only $(ONLY),--count $(N) --seed $(SEED))

lint: setup-tests $(BUILD)/build.ninja
	$(PYTHON_ENV)/ruff check .
	$(PYTHON_ENV)/ruff format --check .
	git ls-files '*.h' '*.cpp' | xargs $(LLVM_PREFIX)/bin/clang-format --dry-run -Werror
	cmake --build $(BUILD) --target check-docs

format: setup-tests
	$(PYTHON_ENV)/ruff check --fix -q . ; $(PYTHON_ENV)/ruff format -q .
	git ls-files '*.h' '*.cpp' | xargs $(LLVM_PREFIX)/bin/clang-format -i

# LLVM itself is not instrumented and shares allocators with the project, so memory that LLVM's headers poison cannot be checked. The
# host device has its own stacks. -O1 with line tables takes half the time of a full debug build.
sanitize: export ASAN_OPTIONS := allow_user_poisoning=0:detect_stack_use_after_return=0
sanitize: export UBSAN_OPTIONS := print_stacktrace=1
sanitize: setup-tests build
	test -f build-sanitize/build.ninja || $(CONFIGURE) -B build-sanitize -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -gline-tables-only -DNDEBUG" \
	  -DTRITON_METAL_BUILD_TESTS=ON -DTRITON_METAL_BUILD_PYTHON=OFF -DTRITON_METAL_SANITIZE=ON
	cmake --build build-sanitize -j $(JOBS)
	ctest --test-dir build-sanitize --output-on-failure -j $(JOBS)
	$(PYTHON_ENV)/lit -s tests/lit --param build=$(CURDIR)/build-sanitize --param llvm_tools=$(LLVM_PREFIX)/bin
	$(FUZZ_TTIR) --build build-sanitize --corpus tests/lit/tt/stock --programs 300 --mutants 1000 --limit 120
	rm -rf build-sanitize/programs
	PYTHONPATH=python:tests/python $(PYTHON_ENV)/python -m random_programs --jobs $(JOBS) --count 1000 --seed $(SEED) \
	  --texts build-sanitize/programs
	$(FUZZ_TTIR) --build build-sanitize --corpus build-sanitize/programs --programs 0 --mutants 0 --limit 120 --metal
	test ! -d $(PACKAGE_KERNELS) || $(FUZZ_TTIR) --build build-sanitize --corpus $(PACKAGE_KERNELS) --programs 0 --mutants 0 --limit 120

# The same SEED gives the same texts. Texts that fail are kept in build/fuzz-ttir.
FUZZ_TTIR = $(PYTHON_ENV)/python tests/fuzz/fuzz_ttir.py --jobs $(JOBS)
fuzz-ttir: build
	$(FUZZ_TTIR) --metal --mutants $(N) --programs $$(($(N) / 20)) --seed $(or $(SEED),1)

fuzz-metal: build
	PYTHONPATH=python $(PYTHON_ENV)/python tests/fuzz/metal_texts.py --count $(or $(COUNT),1000) --seed $(or $(SEED),0) --jobs $(JOBS)

mlx-kernels: setup-tests build
	$(PYTHON_ENV)/python scripts/compile-mlx-kernels --jobs $(JOBS)
	$(if $(MLX),$(PYTHON_ENV)/python scripts/compile-mlx-kernels --source $(MLX) --jobs $(JOBS))
	$(if $(MLX),TRITON_METAL_MLX_SOURCE=$(abspath $(MLX))) TRITON_METAL_MLX_CHECKS=all $(PYTEST) tests/python/test_mlx_runs_*.py \
	  tests/python/test_mlx_tables.py

# The Triton IR of their kernels, which `make sanitize` compiles, too.
PACKAGE_KERNELS = $(CURDIR)/build/package-kernels
packages: setup-tests build
	@TRITON_KERNEL_DUMP=1 TRITON_DUMP_DIR=$(PACKAGE_KERNELS) $(PYTHON_ENV)/python scripts/packages $(if $(TRITON),--tutorials $(TRITON))

agx: setup-tests build
	benchmarks/agx/build.sh
	PYTHONPATH=python:. $(PYTHON_ENV)/python -m benchmarks.agx --table

spills: setup-tests demo
	PYTHONPATH=python:. $(PYTHON_ENV)/python -m benchmarks.agx.spills

pins:
	@scripts/pin.sh

wheels: setup-wheels
	$(PYTHON_ENV)/python packaging/check_wheels.py --jobs $(JOBS)

clean:
	rm -rf build build-sanitize build-wheel build-wheel-host build-wheel-check out dist
