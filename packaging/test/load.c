/* Loads a plugin that links the archive (argument, or PLUGIN). Exits with 0 if the plugin works and exports nothing of
 * the library, with 3 if it works and does export it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifndef PLUGIN
#define PLUGIN "./plugin.so"
#endif

int main(int argc, char **argv) {
    static const char *const names[] = {"tatcell_version", "tatcell_cell_check", "tatcell_table_check_burst",
                                        "tatcell_host_clock"};
    void *plugin = dlopen(argc > 1 ? argv[1] : PLUGIN, RTLD_NOW | RTLD_LOCAL), *symbol;
    int (*admits)(void);
    if (plugin == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
    symbol = dlsym(plugin, "plugin_admits");
    if (symbol == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
    memcpy(&admits, &symbol, sizeof admits);
    if (admits() != 3) return fprintf(stderr, "the plugin does not work\n"), 2;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (dlsym(plugin, names[i]) != NULL) return fprintf(stderr, "the plugin exports %s\n", names[i]), 3;
    puts("the plugin works and exports nothing of the library");
    return 0;
}
