# tatcell: `make help` lists the targets. Parts of the tree have Makefiles of their own: `make -C cluster help`.
.DELETE_ON_ERROR:
# Tests share folders and the machine: one target at a time, but for those of test-packages. Parts build in parallel.
ifneq ($(origin PARALLEL),command line)
.NOTPARALLEL:
endif
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# CC and CXX are not exported where nobody has set them: cargo builds a crate in C anew when they come or go.
DEMO_PORT ?= 47474
DEMO_SVG ?= demo.svg
export CARGO

.PHONY: all help
all: lib

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'Parts, each with its own help: make -C bindings|cli|cluster|dev|ffi-tests|firmware|integrations|packaging/kernel help'

include mk/lib.mk mk/install.mk mk/checks.mk mk/old-names.mk
