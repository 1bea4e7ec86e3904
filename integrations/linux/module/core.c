// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * core.c - the library as a module: the functions of tatcell.h for other modules. The list is made from the object.
 */
#include <linux/export.h>
#include <linux/module.h>

#include <tatcell.h>

#include "exports.h"

static int __init tatcell_start(void)
{
	u32 found = tatcell_version();

	/* The header that modules are built with and the object are of one release. */
	if (found != TATCELL_VERSION) {
		pr_err("tatcell: the object is of version %u, the header of %u\n", found, (u32)TATCELL_VERSION);
		return -EINVAL;
	}
	return 0;
}

static void __exit tatcell_stop(void)
{
}

module_init(tatcell_start);
module_exit(tatcell_stop);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Rate limits: cells and keyed tables, without lock and allocation");
