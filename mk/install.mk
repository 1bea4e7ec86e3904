# make install and make uninstall. DESTDIR and PREFIX as everywhere; LIBDIR may be multiarch (make install PREFIX=/usr
# LIBDIR=/usr/lib/x86_64-linux-gnu). What is installed may be moved as a whole: nothing in it names an absolute folder.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DOCDIR ?= $(PREFIX)/share/doc/tatcell
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
DESTDIR ?=
INSTALL ?= install

LICENSES := LICENSE-MIT LICENSE-APACHE
# All but the firmware's tatcell_small.h; packaging/test/run.sh compares this with include/.
HEADERS := tatcell.h tatcell_host.h tatcell_inline.h tatcell_bpf.h tatcell.ffi.h tatcell.hpp
PACKAGE := $(BUILD)/package
CMAKE_DIR := $(LIBDIR)/cmake/tatcell
FILLED := tatcell.pc tatcell-config.cmake tatcell-config-version.cmake
INSTALLED := $(HEADERS:%=$(INCLUDEDIR)/%) $(LIBDIR)/libtatcell.a $(LIBDIR)/libtatcell.so.$(VERSION) \
    $(LIBDIR)/libtatcell.so.$(ABI) $(LIBDIR)/libtatcell.so $(LIBDIR)/pkgconfig/tatcell.pc \
    $(CMAKE_DIR)/tatcell-config.cmake $(CMAKE_DIR)/tatcell-config-version.cmake $(LICENSES:%=$(DOCDIR)/%)
# The command, its man pages and completions: what `make cli` built for this machine. CLI= leaves them out.
CLI ?= $(if $(TARGET),,cli/target/release/tatcell)
PAGES := cli/target/pages
COMMAND := $(BINDIR)/tatcell $(MANDIR)/man1/tatcell.1 $(BASHDIR)/tatcell $(ZSHDIR)/_tatcell $(FISHDIR)/tatcell.fish
# The path from one folder to another.
relative = $(shell realpath -m --relative-to='$(1)' '$(2)')

.PHONY: install uninstall
install: lib ## Install the library, and the command if `make cli` built it (DESTDIR=, PREFIX=, LIBDIR=), or uninstall
	@mkdir -p $(PACKAGE)
	@# Who links the archive into a shared object keeps its symbols local, if the linker can do that.
	pointer=$$(echo __SIZEOF_POINTER__ | $(CC) -E -P -x c - | tr -d '\n'); \
	hide=-Wl,--exclude-libs,libtatcell.a; \
	echo 'int probe;' | $(CC) -shared $$hide -x c - -o $(PACKAGE)/probe 2> $(PACKAGE)/probe.log || hide=; \
	for file in $(FILLED); do \
	    sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@ABI@|$(ABI)|g' -e "s|@SIZEOF_VOID_P@|$$pointer|g" \
	        -e "s|@HIDE_ARCHIVE@|$$hide|g" \
	        -e 's|@PREFIX_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(PREFIX))|g' \
	        -e 's|@INCLUDE_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(INCLUDEDIR))|g' \
	        -e 's|@INCLUDE_FROM_LIB@|$(call relative,$(LIBDIR),$(INCLUDEDIR))|g' \
	        packaging/$$file.in > $(PACKAGE)/$$file || exit 1; \
	done
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(CMAKE_DIR)' '$(DESTDIR)$(DOCDIR)'
	$(INSTALL) -m 644 $(LICENSES) '$(DESTDIR)$(DOCDIR)'
	$(INSTALL) -m 644 $(HEADERS:%=include/%) '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 $(LIB_A) '$(DESTDIR)$(LIBDIR)'
	$(INSTALL) -m 755 $(LIB_SO) '$(DESTDIR)$(LIBDIR)'
	ln -sf libtatcell.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/libtatcell.so.$(ABI)'
	ln -sf libtatcell.so.$(ABI) '$(DESTDIR)$(LIBDIR)/libtatcell.so'
	$(INSTALL) -m 644 $(PACKAGE)/tatcell.pc '$(DESTDIR)$(LIBDIR)/pkgconfig'
	$(INSTALL) -m 644 $(PACKAGE)/tatcell-config.cmake $(PACKAGE)/tatcell-config-version.cmake '$(DESTDIR)$(CMAKE_DIR)'
	@if [ -z '$(CLI)' ]; then :; \
	elif [ ! -x '$(CLI)' ] || [ ! -d '$(PAGES)/man1' ]; then \
	    echo 'without the command tatcell: to install it, run `make cli` first'; \
	else $(MAKE) install-command; fi

# Shells look for these names; the files are those of examples/pages.rs.
.PHONY: install-command
install-command:
	$(INSTALL) -d $(patsubst %,'$(DESTDIR)%',$(BINDIR) $(MANDIR)/man1 $(BASHDIR) $(ZSHDIR) $(FISHDIR))
	$(INSTALL) -m 755 $(CLI) '$(DESTDIR)$(BINDIR)/tatcell'
	$(INSTALL) -m 644 $(PAGES)/man1/*.1 '$(DESTDIR)$(MANDIR)/man1'
	$(INSTALL) -m 644 $(PAGES)/bash/tatcell.bash '$(DESTDIR)$(BASHDIR)/tatcell'
	$(INSTALL) -m 644 $(PAGES)/zsh/_tatcell '$(DESTDIR)$(ZSHDIR)'
	$(INSTALL) -m 644 $(PAGES)/fish/tatcell.fish '$(DESTDIR)$(FISHDIR)'

# Removes what install installed, with the same DESTDIR, PREFIX, LIBDIR and INCLUDEDIR
uninstall:
	rm -f $(patsubst %,'$(DESTDIR)%',$(INSTALLED) $(COMMAND)) '$(DESTDIR)$(MANDIR)/man1'/tatcell-*.1
	for folder in '$(DESTDIR)$(CMAKE_DIR)' '$(DESTDIR)$(DOCDIR)'; do [ ! -d "$$folder" ] || rmdir "$$folder"; done
