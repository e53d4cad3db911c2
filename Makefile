# A thin cover over CMake that also sets up a bare Debian or Ubuntu. `make help` lists the goals.
# Variables:  BUILD=build  TYPE=Release  OPTIONS="-DTAPEDECK_ONEDNN=off"  JOBS=2  ARGS="options of tapedeck train"
.DEFAULT_GOAL := build
.PHONY: build setup demo test test-asan test-clang test-portable test-tsan test-race test-cuda cuda-kernels gpu-bundle \
  test-gpu fuzz check-pages format lint bench-peers clean help

BUILD ?= build
TYPE ?= Release
JOBS ?= $(shell nproc)
PACKAGES = g++ make cmake ninja-build ccache git libeigen3-dev libfmt-dev libcli11-dev nlohmann-json3-dev doctest-dev \
           zlib1g-dev libdnnl-dev
export DEBIAN_FRONTEND = noninteractive
# Build folders share objects that differ in nothing else. Sources have absolute paths, so that debuggers miss nothing.
export CCACHE_NOHASHDIR = 1
export CCACHE_SLOPPINESS = pch_defines,time_macros

comma = ,
debug = -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1"
# $(call build,FOLDER,CMAKE OPTIONS,TARGET): configure, a new folder for Ninja where there is one, then build. An older
# folder keeps its generator but gets today's options.
define build
	@if test -e $(1)/CTestTestfile.cmake; then generator=; \
	elif command -v ninja >/dev/null; then generator=Ninja; else generator="Unix Makefiles"; fi; \
	cmake -S . -B $(1) $${generator:+-G "$$generator"} $(2) $(OPTIONS)
	@cmake --build $(1) -j $(JOBS) $(if $(3),--target $(3))
endef
define ctest
	@ctest --test-dir $(1) -j $(JOBS) --output-on-failure --no-tests=error
endef
# $(call install,PACKAGES): apt, only when something is missing; without rights or apt, CMake says what it misses.
define install
	@command -v dpkg-query >/dev/null || exit 0; missing=; \
	for package in $(1); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q "ok installed" || missing="$$missing $$package"; \
	done; \
	test -n "$$missing" || exit 0; \
	if test $$(id -u) = 0; then root=; elif command -v sudo >/dev/null; then root=sudo; \
	else echo "missing packages, and no rights to install them:$$missing"; exit 0; fi; \
	echo "installing:$$missing"; \
	$$root apt-get update -qq && $$root apt-get install -y -qq --no-install-recommends $$missing
endef

build: setup  ## build the program build/tapedeck and the tests
	$(call build,$(BUILD),-DCMAKE_BUILD_TYPE=$(TYPE))

setup:  ## install the PACKAGES that are missing (Debian, Ubuntu)
	$(call install,$(PACKAGES))

demo: build  ## train an MLP on the embedded digits to 97 % and say how long that took
	$(BUILD)/tapedeck train $(ARGS)

test: build  ## all tests
	$(call ctest,$(BUILD))

test-asan: setup  ## all tests, compiled by clang, under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call install,clang)
	$(call build,build-asan,$(debug) -DCMAKE_CXX_COMPILER=clang++ -DTAPEDECK_PRECOMPILE=ON -DTAPEDECK_CUDA=off \
	  -DTAPEDECK_SANITIZE=address$(comma)undefined)
	$(call ctest,build-asan)

test-clang: setup  ## all tests, compiled by clang without sanitizers
	$(call install,clang)
	$(call build,build-clang,$(debug) -DCMAKE_CXX_COMPILER=clang++ -DTAPEDECK_CUDA=off)
	$(call ctest,build-clang)

test-portable: setup  ## tests of devices in a Debug build for any processor, no oneDNN, no assembly of ours
	$(call build,build-portable,$(debug) -DTAPEDECK_NATIVE=OFF -DTAPEDECK_KERNEL_TESTS=ON \
	  -DTAPEDECK_TEST_NAMES='kernels:|gemm:|emulat|map |rows |launch|stream|graph|fiber' \
	  -DTAPEDECK_ONEDNN=off -DTAPEDECK_CUDA=off -DTAPEDECK_UCONTEXT=ON,tapedeck_tests)
	$(call ctest,build-portable)

THREADED = ranges cover|parallel loop|loops one right after|threads may|each has its own|bitwise|byte-equal|worker
# It is also the build of the whole program for any processor and without oneDNN.
test-tsan: setup  ## what runs on several threads, under ThreadSanitizer (which cannot follow oneDNN nor our fibers)
	$(call install,clang)
	$(call build,build-tsan,$(debug) -DCMAKE_CXX_COMPILER=clang++ -DTAPEDECK_PRECOMPILE=ON -DTAPEDECK_NATIVE=OFF \
	  -DTAPEDECK_ONEDNN=off -DTAPEDECK_CUDA=off -DTAPEDECK_SANITIZE=thread -DTAPEDECK_TEST_NAMES='$(THREADED)')
	@ctest --test-dir build-tsan -R '$(THREADED)' --output-on-failure --no-tests=error

test-race: setup  ## the kernels of the emulated device under our race detector (needs g++)
	$(call build,build-race,$(debug) -DCMAKE_CXX_COMPILER=g++ -DTAPEDECK_RACE=ON -DTAPEDECK_CUDA=off,tapedeck_tests)
	$(call ctest,build-race)

FUZZ_SECONDS ?= 60
fuzz: setup  ## the readers of files under libFuzzer, FUZZ_SECONDS=60 each
	$(call install,clang)
	$(call build,build-fuzz,$(debug) -DCMAKE_CXX_COMPILER=clang++ -DTAPEDECK_FUZZ=ON -DTAPEDECK_CUDA=off \
	  -DTAPEDECK_SANITIZE=address$(comma)undefined,fuzz)
	@tests/fuzz/run.sh build-fuzz $(FUZZ_SECONDS)

format:  ## clang-format every source
	$(call install,clang-format)
	@git ls-files '*.cpp' '*.h' | xargs clang-format -i

NVCC = $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
# Files of the CUDA backend that are plain C++, against the headers of the toolkit where there is one.
lint_cuda = $(if $(NVCC),grep -LE "launch(_gpu)?\.h" engine/cuda/*.cpp | xargs -P $(JOBS) -I FILE clang-tidy -quiet FILE -- -std=c++20 \
	  -I. -isystem $(abspath $(dir $(NVCC))/../include),true)
LINTED ?= engine|ops|data|apps|tests
lint: setup  ## clang-tidy: bugprone and performance checks, warnings are errors
	$(call install,clang-tidy clang)
	$(call build,build-clang,$(debug) -DCMAKE_CXX_COMPILER=clang++ -DTAPEDECK_CUDA=off,tapedeck_commit)
	@{ run-clang-tidy -quiet -p build-clang -j $(JOBS) '$(CURDIR)/($(LINTED))/.*' && $(lint_cuda); } \
	  > build-clang/lint.txt 2>&1 \
	  && grep -q "engine/arena.cpp" build-clang/lint.txt && echo "lint: clean" || { grep -E "(warning|error):" build-clang/lint.txt | sort -u; exit 1; }

ifeq ($(NVCC),)
test-cuda cuda-kernels gpu-bundle test-gpu:
	@echo "skipped: no nvcc"
else
cuda = $(call build,build-cuda,-DTAPEDECK_CUDA=on,$(1))
test-cuda: setup  ## all tests of a build with CUDA; without a GPU, those that need one are skipped
	$(call cuda)
	$(call ctest,build-cuda)

GPU_BUNDLE = build-gpu-bundle/gpu-bundle
gpu-bundle: setup  ## a folder to carry to a machine with a GPU: the program, the tests, and check.sh that runs and times them
	$(call build,build-gpu-bundle,-DTAPEDECK_CUDA=on -DTAPEDECK_STANDALONE=ON,tapedeck_tests)
	@rm -rf $(GPU_BUNDLE) && mkdir $(GPU_BUNDLE)
	@cp tests/gpu/check.sh build-gpu-bundle/tapedeck build-gpu-bundle/tapedeck_tests $(GPU_BUNDLE)
	@strip $(GPU_BUNDLE)/tapedeck $(GPU_BUNDLE)/tapedeck_tests
	@mib=$$(du -sm $(GPU_BUNDLE) | cut -f1); echo "$(GPU_BUNDLE): $$mib MiB; on the other machine: ./check.sh"; test $$mib -le 60

test-gpu: setup  ## on a machine with a GPU: what check.sh of the bundle does, in place
	$(call cuda,tapedeck_tests)
	@BIN=build-cuda tests/gpu/check.sh build-cuda/gpu-check

cuda-kernels: setup  ## registers, shared memory and spills of every GPU kernel; fails where one spills without a reason
	$(call cuda,tapedeck)
	@engine/cuda/nvcc/kernels.sh build-cuda
endif

check-pages: build  ## pages of real runs in headless Chromium: no text that touches or is clipped, nothing loaded
	$(call install,chromium python3)
	@tests/pages/check.sh $(BUILD)/tapedeck $(BUILD)/check-pages

bench-peers: build  ## our training step and PyTorch's, interleaved, with the ratio
	tests/peers/run.sh $(ARGS)

clean:  ## remove every build folder
	rm -rf build build-*

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 16
