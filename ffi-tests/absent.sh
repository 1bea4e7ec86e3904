#!/bin/sh
# Prints a line for each test that this machine cannot run: the Makefile leaves those out.
. ffi-tests/tap.sh
pkg-config --exists libdpdk 2> /dev/null || skip meters_dpdk 'DPDK is missing: apt-get install libdpdk-dev pkg-config'
have luajit || skip luajit 'luajit is missing: apt-get install luajit'
finish
