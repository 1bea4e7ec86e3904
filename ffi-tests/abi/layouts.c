/* layouts.c - compiled, not run: sizes and offsets are those of layout.h on this machine.
 *
 * WRONG_SIZE, for the control, claims that a structure is four bytes longer. */
#include <stddef.h>

#include "tatcell.h"
#include "tatcell_host.h"

#define PICK(wide, narrow) (sizeof(void *) == 8 ? (wide) : (narrow))
#define SIZE(noun, wide, narrow) \
    _Static_assert(sizeof(tatcell_##noun##_t) == PICK(wide, narrow), "the size of " #noun);
#define AT(noun, field, wide, narrow) \
    _Static_assert(offsetof(tatcell_##noun##_t, field) == PICK(wide, narrow), "the place of " #noun "." #field);
#include "layout.h"
#ifdef WRONG_SIZE
SIZE(decision, sizeof(tatcell_decision_t) + 4, sizeof(tatcell_decision_t) + 4)
#endif
