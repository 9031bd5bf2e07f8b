/* SPDX-License-Identifier: GPL-2.0-only */
/* What device.c and its helpers (minors.c, pci.c, desc_*.c, fault.c) share among themselves. */
#ifndef KFDSIM_DEVICE_H
#define KFDSIM_DEVICE_H

#include "sim.h"

struct dentry;
struct device;

/* ---- minors.c: exact minor numbers from the DRM core, which hands out the lowest free one ---- */

/*
 * Takes all card minors up to the highest that @desc wants. Then, for each GPU in ascending order of
 * render minors: sim_minors_open(), create the DRM device, and finally sim_minors_done() for all.
 */
int sim_minors_begin(const struct sim_desc *desc);
/* Makes @card the lowest free card minor and @render the lowest free render minor. */
int sim_minors_open(u32 card, u32 render);
void sim_minors_done(void);

/* ---- pci.c ---- */

/* One PCI device for each GPU of @desc, on root buses of our own. */
int sim_pci_init(const struct sim_desc *desc);
void sim_pci_fini(void);
/* The PCI device that the partitions of @node's GPU share; NULL when it did not appear. */
struct device *sim_pci_device(const struct sim_node *node);

/* ---- modname.c: a trace of a loaded "amdgpu" in /sys/module ---- */

int sim_modname_init(void);
void sim_modname_fini(void);

/* ---- fault.c ---- */

void sim_fault_init(struct dentry *dir);

/* ---- clients.c ---- */

void sim_clients_init(struct dentry *dir);

#endif
