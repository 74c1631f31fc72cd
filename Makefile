# The front door. Each target sets up what it needs (tools/bootstrap: Debian 12, as root or with sudo),
# builds with Meson under build/ and says at the end how it went.
SHELL := /bin/bash
PREFIX ?= /usr/local
SECONDS ?= 60
FUZZ ?=
SUITE ?=

.PHONY: help demo check bench install format lint asan tsan fuzz corpus proof clean bootstrap

help: ## this list (the default)
	@echo "make TARGET, where TARGET is one of:"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "    %-10s %s\n", $$1, $$2 }' Makefile

demo: ## set up, build, run the main job once and print its result
	@tools/bootstrap programs
	@tools/build debug:programs
	@tools/demo

check: bootstrap ## set up, build, run every test (SUITE=unit: one kind); ends with `N passed, N failed`
	@tools/build debug
	@tools/run_tests build/debug $(if $(SUITE),--suite $(SUITE))

bench: bootstrap ## measure each figure beside its peer (bench/run --list names them)
	@tools/build release
	@bench/run

install: ## release build into PREFIX=/usr/local (DESTDIR=DIR is put before it)
	@tools/bootstrap programs
	@tools/build release:programs -Dprefix=$(abspath $(PREFIX))
	@/usr/bin/meson install -C build/release --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	@tools/install_python build/release "$(if $(DESTDIR),$(abspath $(DESTDIR)))" "$(abspath $(PREFIX))"

format: bootstrap ## lay out C and Python sources
	@tools/format

lint: bootstrap ## layout, layers, banned calls, headers, clang-tidy, -Werror with gcc and clang, ...
	@tools/lint

asan: bootstrap ## tests that run our code under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/build asan
	@ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:strict_string_checks=1:detect_stack_use_after_return=1 \
		UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1 \
		tools/run_tests build/asan --timeout-multiplier 4 --no-suite checks --no-suite once

tsan: bootstrap ## tests of what has threads under ThreadSanitizer
	@tools/build tsan
	@TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
		tools/run_tests build/tsan --timeout-multiplier 8 --suite threads --no-suite once

fuzz: bootstrap ## each fuzz target for SECONDS=60 (FUZZ="name ..." for some), ASan and UBSan on
	@tools/build fuzz
	@tools/fuzz run --seconds $(SECONDS) $(FUZZ)

corpus: bootstrap ## take what `make fuzz` found into tests/fuzz/corpus, minimised
	@tools/build fuzz
	@tools/fuzz merge $(FUZZ)

proof: bootstrap ## the long runs, for hours: 1,000 kills, 1,000 sandboxes, jitter, 600 s a fuzz target
	@tools/build debug
	@tools/build fuzz
	@tools/proof

clean: ## remove build/
	rm -rf build

bootstrap: ## only the set-up: Debian packages, build/venv
	@tools/bootstrap
