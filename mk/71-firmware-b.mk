# Other machines: one trace with the same answers everywhere, and the crate's own tests on other hosts.
.PHONY: test-trace test-hosts
test-trace: ## One trace of requests on this host, bare machines in QEMU and other hosts: equal byte for byte
	@firmware/hosts/tools
	@firmware/hosts/trace

test-hosts: ## The crate's own tests on s390x, powerpc, armv7, aarch64 and i686 (long)
	@firmware/hosts/tools
	@firmware/hosts/tests

.PHONY: test-frames
test-frames: ## Firmware on a board with an Ethernet controller polices and shapes real UDP flows
	@firmware/hosts/tools
	@firmware/frames/test

.PHONY: test-firmware-rust
test-firmware-rust: ## The Rust firmware example on four boards in QEMU
	@firmware/hosts/tools
	@firmware/rust/test

.PHONY: test-recipes
test-recipes: ## The recipes for make, CMake, Zephyr, ESP-IDF, Arduino and PlatformIO: built here, or with stand-ins
	@firmware/hosts/tools
	@packaging/firmware/test/run
