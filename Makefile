# tatcell: `make help` lists the targets. The front of tools/xtask, which builds and tests; install is here.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

CARGO ?= cargo
CC ?= cc
CXX ?= c++
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DESTDIR ?=
INSTALL ?= install
BENCH_SECONDS ?= 90
BENCH_ONLY ?=
DEMO_PORT ?= 47474
TARGET ?=
SECONDS ?= 60
KEEP ?=
DEMO_SVG ?= demo.svg
CLUSTER_SVG ?= cluster.svg
COMPARE_SVG ?= compare.svg
LONG ?=
LOGS ?=
FILE ?=
export CC CXX MAKE TARGET SECONDS KEEP LONG LOGS FILE
export BENCH_SECONDS BENCH_ONLY DEMO_PORT DEMO_SVG CLUSTER_SVG COMPARE_SVG

XTASK := $(CARGO) run --quiet --package tatcell-xtask --
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
# The one place that has the number of the ABI.
ABI := $(shell sed -n 's/^pub const TATCELL_ABI_VERSION: u32 = \(.*\);/\1/p' src/capi/codes.rs)
BUILD := target/c
LIB_A := $(BUILD)/libtatcell.a
LIB_SO := $(BUILD)/libtatcell.so.$(VERSION)
# What install installs; the tests read this line, too.
HEADERS := tatcell.h tatcell_host.h tatcell_inline.h tatcell_bpf.h tatcell.ffi.h tatcell.hpp

.PHONY: all help lib
all: lib ## Build the C library (same as lib)

help: ## List the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

lib: $(LIB_SO) ## Build libtatcell.a and libtatcell.so

# By the age of the sources, so that install as another user builds nothing again.
$(LIB_SO): Cargo.toml build.rs include/tatcell.map $(shell find src -name '*.rs')
	@$(XTASK) lib

# What xtask does is described here and handed on as it is.
test: ## Run the test suites (minutes); says what it skipped and why
test-lint: ## Formatting, clippy, rustdoc and word rules without a warning
test-harness: ## Test the harness itself: it counts and sees what it must
test-rust: ## Rust tests: semantics, properties, races, kills, the protocol explorer
test-races: ## Threads that race for one word a million times; with nothing beside it
test-loom: ## Check every interleaving of cells and table operations in small models (minutes)
test-explorer: ## Take the shipped table through every schedule of small worlds, one atomic access a step
test-proofs: ## Prove the insert protocol (Spin) and the arithmetic (z3), weakened ones found out (a minute)
test-fuzz: ## Hostile inputs on stable: the corpus of each fuzz target, and inputs made from it
test-ffi: ## Test the library through its C ABI, from C and C++
test-abi: ## The C ABI beside the dump of the last release, on other machines, with older programs
test-package: ## Install into a staging folder, build against it with pkg-config and CMake, move it, build again
assurance: ## Every promise beside its checks: docs/ASSURANCE.md; LONG=1: long forms (hours), LOGS=1: of the last logs
test-attacks: ## Floods, evaders and collisions against tables, in small: what docs/ATTACKS.md claims
attacks: ## The same in full: the figures of docs/ATTACKS.md and its picture (minutes)
attacks-long: ## The same in full as a test: the page must have the figures of a fresh run (minutes)
test-docs: ## Compile and run every program and command of the documents and the header
test-bench: ## A short run of the bench: rows, files and instruction counts; no time decides
test-demo: ## Run the demo as a test: its verdict lines are the tests; one more try where the machine was busy
test-firmware: ## Run the firmware tests in QEMU: gates, example, exactness under interrupts, budgets
test-integrations: ## nginx and others with the installed library: the tests of integrations/ (minutes)
loom: ## The same as test-loom
explorer-long: ## The explorer's large worlds (minutes, gigabytes)
proofs-long: ## The insert protocol in Promela with two slots a line (minutes, gigabytes)
loom-long: ## The loom models with higher bounds (an hour); TATCELL_QUICK=1: four of them
test-shuttle: ## Eight threads on one set, in orders drawn at random: shuttle's coroutines, and real threads in turn
shuttle-long: ## The same with a million orders (half an hour); TATCELL_QUICK=1: 2e5
planted: ## Put bugs into a copy of the tree: the checks that they name must notice (an hour; ONLY=part,of,names)
coverage: ## The tests in Rust take every branch of the modules without atomics both ways, but for docs/coverage.tsv
mutants: ## Change each operator of the core and of the C layer in turn: a test must notice (half an hour; FILE=part,of,names)
test-long: ## The long tests: 1e9 oracle decisions, 1e5 kills, the large explorer; TATCELL_QUICK=1: short
test-cluster: ## Nodes that share limits through stores of the tests' own: every admission audited; TATCELL_LONG=1: long
test-cluster-c: ## The C interface of cluster/, as built and as installed, and the demo's verdict lines
test-doors: ## The servers for clients of redis-cell and for Envoy, with clients that others made
test-containers: ## The container files of those servers, built from a fresh clone and run (minutes)
test-sanitizers: ## Sanitizers in Rust and C, valgrind, Miri; each must see a planted defect first; TATCELL_QUICK=1: short
test-hosts: ## The crate's own tests on s390x, powerpc, armv7, aarch64 and i686 (long); TATCELL_QUICK=1: s390x
test-trace: ## One trace of requests on this host, bare machines in QEMU and other hosts: equal byte for byte
test-frames: ## Firmware on a board with an Ethernet controller polices and shapes real UDP flows
test-firmware-rust: ## Firmware in Rust: the example on four boards in QEMU, tasks of embassy, fugit, sizes
test-recipes: ## The recipes for make, CMake, Zephyr, ESP-IDF, Arduino and PlatformIO: built here, or with stand-ins
cluster-lib: ## Build the C library of cluster/: libtatcell_cluster.a and libtatcell_cluster.so
cluster-count: ## Instructions of a decision of cluster/ by each way; the budgets are in cluster/gates.tsv
demo-cluster: ## Four nodes and a redis-server on loopback: killed, stopped, audited; verdict and cluster.svg
header: ## Generate the headers from src/capi
firmware: ## Build the firmware archives (Cortex-M0 to M4F, RISC-V)
fuzz: ## Search for inputs that break TARGET= of fuzz/ for SECONDS=; KEEP=1 adds what reached new code to its corpus
demo: ## Attack a UDP server, without the limiter, then with it; verdict and demo.svg (half a minute)
compare: ## Send the same arrivals through every algorithm; a table, claims and compare.svg (seconds)
bench: ## Time tatcell beside bare atomics and other limiters, count instructions, judge the goals, compare with kept runs (minutes)
bench-time: ## Only the times; BENCH_SECONDS= sets how long, BENCH_ONLY= which rows (parts of names)
bench-count: ## Only the instructions per decision (valgrind)
bench-peers: ## Build the peers in C++ and C: mutex and unordered_map, DPDK
bench-tools: ## Install what the bench can use and this machine lacks (as root, with apt-get)
TASKS := header cluster-lib fuzz demo demo-cluster cluster-count firmware compare \
    test test-lint test-harness test-rust test-races test-ffi test-abi test-package test-docs test-bench test-demo \
    test-loom test-explorer test-proofs test-shuttle test-fuzz test-attacks assurance attacks attacks-long \
    test-firmware test-firmware-rust test-trace test-recipes test-frames \
    test-integrations test-cluster test-cluster-c test-doors test-containers \
    test-long test-hosts test-sanitizers loom loom-long explorer-long proofs-long shuttle-long planted coverage mutants \
    bench bench-time bench-count bench-peers bench-tools
.PHONY: $(TASKS)
$(TASKS):
	@$(XTASK) $@

.PHONY: kernel
kernel: ## Build the library as an object for modules of the Linux kernel, with its gates: target/kernel/ARCH
	@packaging/kernel/build x86_64 target/kernel/x86_64
	@if command -v aarch64-linux-gnu-ld > /dev/null; then packaging/kernel/build aarch64 target/kernel/aarch64; \
	else echo 'SKIP aarch64: no linker, apt-get install gcc-aarch64-linux-gnu'; fi

# DESTDIR and PREFIX as everywhere; LIBDIR may be multiarch (make install PREFIX=/usr
# LIBDIR=/usr/lib/x86_64-linux-gnu). What is installed may be moved as a whole: nothing in it names an absolute folder.
PACKAGE := target/package
CMAKE_DIR := $(LIBDIR)/cmake/tatcell
FILLED := tatcell.pc tatcell-config.cmake tatcell-config-version.cmake
INSTALLED := $(HEADERS:%=$(INCLUDEDIR)/%) $(LIBDIR)/libtatcell.a $(LIBDIR)/libtatcell.so.$(VERSION) \
    $(LIBDIR)/libtatcell.so.$(ABI) $(LIBDIR)/libtatcell.so $(LIBDIR)/pkgconfig/tatcell.pc \
    $(CMAKE_DIR)/tatcell-config.cmake $(CMAKE_DIR)/tatcell-config-version.cmake
# The path from one folder to another.
relative = $(shell realpath -m --relative-to='$(1)' '$(2)')

# The companion library, which needs nothing of the one above.
CLUSTER_ABI := $(shell sed -n 's/^pub const TATCELL_CLUSTER_ABI_VERSION: u32 = \(.*\);/\1/p' cluster/src/capi/codes.rs)
CLUSTER_SO := libtatcell_cluster.so.$(VERSION)
CLUSTER_CMAKE_DIR := $(LIBDIR)/cmake/tatcell_cluster
CLUSTER_FILLED := tatcell_cluster.pc tatcell_cluster-config.cmake tatcell_cluster-config-version.cmake
CLUSTER_INSTALLED := $(INCLUDEDIR)/tatcell_cluster.h $(LIBDIR)/libtatcell_cluster.a $(LIBDIR)/$(CLUSTER_SO) \
    $(LIBDIR)/libtatcell_cluster.so.$(CLUSTER_ABI) $(LIBDIR)/libtatcell_cluster.so \
    $(LIBDIR)/pkgconfig/tatcell_cluster.pc \
    $(CLUSTER_FILLED:%.cmake=$(CLUSTER_CMAKE_DIR)/%.cmake)

.PHONY: install uninstall install-cluster uninstall-cluster
install: lib ## Install headers, libraries, pkg-config and CMake files (DESTDIR=, PREFIX=, LIBDIR=, INCLUDEDIR=)
	@mkdir -p $(PACKAGE)
	pointer=$$(echo __SIZEOF_POINTER__ | $(CC) -E -P -x c - | tr -d '\n'); \
	hide=-Wl,--exclude-libs,libtatcell.a; \
	echo 'int probe;' | $(CC) -shared $$hide -x c - -o $(PACKAGE)/probe 2> $(PACKAGE)/probe.log || hide=; \
	for file in $(FILLED); do \
	    sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@ABI@|$(ABI)|g' -e "s|@SIZEOF_VOID_P@|$$pointer|g" \
	        -e "s|@HIDE_ARCHIVE@|$$hide|g" \
	        -e 's|@PREFIX_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(PREFIX))|g' \
	        -e 's|@INCLUDE_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(INCLUDEDIR))|g' \
	        -e 's|@INCLUDE_FROM_LIB@|$(call relative,$(LIBDIR),$(INCLUDEDIR))|g' \
	        packaging/$$file.in > $(PACKAGE)/$$file; \
	done
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(CMAKE_DIR)'
	$(INSTALL) -m 644 $(HEADERS:%=include/%) '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 $(LIB_A) '$(DESTDIR)$(LIBDIR)'
	$(INSTALL) -m 755 $(LIB_SO) '$(DESTDIR)$(LIBDIR)'
	ln -sf libtatcell.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/libtatcell.so.$(ABI)'
	ln -sf libtatcell.so.$(ABI) '$(DESTDIR)$(LIBDIR)/libtatcell.so'
	$(INSTALL) -m 644 $(PACKAGE)/tatcell.pc '$(DESTDIR)$(LIBDIR)/pkgconfig'
	$(INSTALL) -m 644 $(PACKAGE)/tatcell-config.cmake $(PACKAGE)/tatcell-config-version.cmake '$(DESTDIR)$(CMAKE_DIR)'

uninstall: ## Remove what install installed, with the same DESTDIR, PREFIX, LIBDIR and INCLUDEDIR
	rm -f $(patsubst %,'$(DESTDIR)%',$(INSTALLED))
	-[ ! -d '$(DESTDIR)$(CMAKE_DIR)' ] || rmdir '$(DESTDIR)$(CMAKE_DIR)'

install-cluster: cluster-lib ## Install tatcell_cluster.h and its libraries, pkg-config and CMake files, as install does
	@mkdir -p $(PACKAGE)
	pointer=$$(echo __SIZEOF_POINTER__ | $(CC) -E -P -x c - | tr -d '\n'); \
	for file in $(CLUSTER_FILLED); do \
	    sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@CLUSTER_ABI@|$(CLUSTER_ABI)|g' -e "s|@SIZEOF_VOID_P@|$$pointer|g" \
	        -e 's|@PREFIX_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(PREFIX))|g' \
	        -e 's|@INCLUDE_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(INCLUDEDIR))|g' \
	        -e 's|@INCLUDE_FROM_LIB@|$(call relative,$(LIBDIR),$(INCLUDEDIR))|g' \
	        packaging/$$file.in > $(PACKAGE)/$$file; \
	done
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(CLUSTER_CMAKE_DIR)'
	$(INSTALL) -m 644 cluster/include/tatcell_cluster.h '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 $(BUILD)/libtatcell_cluster.a '$(DESTDIR)$(LIBDIR)'
	$(INSTALL) -m 755 $(BUILD)/$(CLUSTER_SO) '$(DESTDIR)$(LIBDIR)'
	ln -sf $(CLUSTER_SO) '$(DESTDIR)$(LIBDIR)/libtatcell_cluster.so.$(CLUSTER_ABI)'
	ln -sf libtatcell_cluster.so.$(CLUSTER_ABI) '$(DESTDIR)$(LIBDIR)/libtatcell_cluster.so'
	$(INSTALL) -m 644 $(PACKAGE)/tatcell_cluster.pc '$(DESTDIR)$(LIBDIR)/pkgconfig'
	$(INSTALL) -m 644 $(filter %.cmake,$(CLUSTER_FILLED:%=$(PACKAGE)/%)) '$(DESTDIR)$(CLUSTER_CMAKE_DIR)'

uninstall-cluster: ## Remove what install-cluster installed
	rm -f $(patsubst %,'$(DESTDIR)%',$(filter-out tatcell_cluster.pc,$(CLUSTER_INSTALLED)))
	-[ ! -d '$(DESTDIR)$(CLUSTER_CMAKE_DIR)' ] || rmdir '$(DESTDIR)$(CLUSTER_CMAKE_DIR)'
