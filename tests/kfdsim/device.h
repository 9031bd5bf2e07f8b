/* SPDX-License-Identifier: GPL-2.0-only */
/* What device.c and its helpers (minors.c, pci.c, desc_*.c, fault.c) share among themselves. */
#ifndef KFDSIM_DEVICE_H
#define KFDSIM_DEVICE_H

#include "sim.h"

struct dentry;
struct pci_dev;

/* ---- minors.c: exact minor numbers from the DRM core, which hands out the lowest free one ---- */

/*
 * Takes all card minors up to the highest that @desc wants. Then, for each GPU in ascending order of
 * render minors: sim_minors_open(), create the DRM device, and finally sim_minors_done() for all.
 */
int sim_minors_begin(const struct sim_desc *desc);
/* Makes @card the lowest free card minor and @render the lowest free render minor. */
int sim_minors_open(u32 card, u32 render);
void sim_minors_done(void);

/* ---- fault.c ---- */

void sim_fault_init(struct dentry *dir);
void sim_fault_fini(void);

#endif
