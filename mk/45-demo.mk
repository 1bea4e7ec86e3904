# The demo: attacks examples/udp_gate.c over loopback, limiter off, then on, and judges it. No privilege.
DEMO_PORT ?= 47474
DEMO_SVG ?= demo.svg
GATE := $(BUILD)/udp_gate

.PHONY: demo demo-tools
demo: demo-tools ## Attack a UDP server, without the limiter, then with it; verdict and demo.svg (half a minute)
	@$(MAKE) --no-print-directory $(GATE)
	$(CARGO) build --release -p tatcell-demo
	@target/release/tatcell-demo --gate $(GATE) --port $(DEMO_PORT) --svg $(DEMO_SVG)

demo-tools:
	@for tool in $(firstword $(CC)) $(firstword $(CARGO)) ld objcopy; do \
	    command -v $$tool >/dev/null || { \
	        echo "make demo: $$tool is missing; it needs a C compiler (gcc or clang, or CC=...), binutils and Rust" >&2; \
	        exit 1; \
	    }; \
	done

$(GATE): examples/udp_gate.c include/tatcell.h $(LIB_A)
	$(CC) -O2 -Wall -Wextra -Iinclude $< $(LIB_A) -o $@
