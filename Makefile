# tatcell: `make help` lists the targets.
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

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
BUILD := target/c
CFLAGS_STRICT := -O2 -g -Wall -Wextra -Werror -pedantic

.PHONY: all help
all: lib ## Build the C library (same as lib)

help: ## List the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

include $(sort $(wildcard mk/*.mk))
