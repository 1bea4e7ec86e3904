# Installing: headers, both libraries, pkg-config and CMake files. DESTDIR and PREFIX as everywhere; LIBDIR may be
# multiarch (make install PREFIX=/usr LIBDIR=/usr/lib/x86_64-linux-gnu). What is installed may be moved as a whole.
PACKAGE := target/package
INSTALL ?= install

# relative FROM TO: the path from one folder to another, so that nothing installed names an absolute one.
relative = $(shell realpath -m --relative-to='$(1)' '$(2)')

INSTALLED_HEADERS := tatcell.h tatcell_host.h tatcell.ffi.h tatcell.hpp
INSTALLED := $(addprefix $(INCLUDEDIR)/,$(INSTALLED_HEADERS)) $(LIBDIR)/libtatcell.a $(LIBDIR)/libtatcell.so.$(VERSION) \
    $(LIBDIR)/libtatcell.so.$(ABI) $(LIBDIR)/libtatcell.so $(LIBDIR)/pkgconfig/tatcell.pc \
    $(LIBDIR)/cmake/tatcell/tatcell-config.cmake $(LIBDIR)/cmake/tatcell/tatcell-config-version.cmake

.PHONY: install uninstall test-package
install: lib ## Install headers, libraries, pkg-config and CMake files (DESTDIR=, PREFIX=, LIBDIR=, INCLUDEDIR=)
	@mkdir -p $(PACKAGE)
	pointer=$$(echo __SIZEOF_POINTER__ | $(CC) -E -P -x c - | tr -d '\n'); \
	hide=-Wl,--exclude-libs,libtatcell.a; \
	echo 'int probe;' | $(CC) -shared $$hide -x c - -o $(PACKAGE)/probe 2> $(PACKAGE)/probe.log || hide=; \
	for file in tatcell.pc tatcell-config.cmake tatcell-config-version.cmake; do \
	    sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@ABI@|$(ABI)|g' -e "s|@SIZEOF_VOID_P@|$$pointer|g" \
	        -e "s|@HIDE_ARCHIVE@|$$hide|g" \
	        -e 's|@PREFIX_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(PREFIX))|g' \
	        -e 's|@INCLUDE_FROM_PC@|$(call relative,$(LIBDIR)/pkgconfig,$(INCLUDEDIR))|g' \
	        -e 's|@INCLUDE_FROM_LIB@|$(call relative,$(LIBDIR),$(INCLUDEDIR))|g' \
	        packaging/$$file.in > $(PACKAGE)/$$file; \
	done
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(LIBDIR)/cmake/tatcell'
	$(INSTALL) -m 644 $(addprefix include/,$(INSTALLED_HEADERS)) '$(DESTDIR)$(INCLUDEDIR)'
	$(INSTALL) -m 644 $(LIB_A) '$(DESTDIR)$(LIBDIR)'
	$(INSTALL) -m 755 $(LIB_SO) '$(DESTDIR)$(LIBDIR)'
	ln -sf libtatcell.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/libtatcell.so.$(ABI)'
	ln -sf libtatcell.so.$(ABI) '$(DESTDIR)$(LIBDIR)/libtatcell.so'
	$(INSTALL) -m 644 $(PACKAGE)/tatcell.pc '$(DESTDIR)$(LIBDIR)/pkgconfig'
	$(INSTALL) -m 644 $(PACKAGE)/tatcell-config.cmake $(PACKAGE)/tatcell-config-version.cmake \
	    '$(DESTDIR)$(LIBDIR)/cmake/tatcell'

uninstall: ## Remove what install installed, with the same DESTDIR, PREFIX, LIBDIR and INCLUDEDIR
	rm -f $(patsubst %,'$(DESTDIR)%',$(INSTALLED))
	-[ ! -d '$(DESTDIR)$(LIBDIR)/cmake/tatcell' ] || rmdir '$(DESTDIR)$(LIBDIR)/cmake/tatcell'

test-package: lib ## Install into a staging folder, build against it with pkg-config and CMake, move it, build again
	OUT=target/ffi/package VERSION=$(VERSION) ABI=$(ABI) CC='$(CC)' CXX='$(CXX)' MAKE='$(MAKE)' packaging/test.sh
