# SPDX-License-Identifier: GPL-2.0-only
# GPU processes for the scenarios with the real criu: build/workloads/NAME.
# To be included from the top directory of the tree; target: workloads.

WORKLOADS_DIR := build/workloads
WORKLOADS_PROGRAMS := gpujob
WORKLOADS_SOURCES := gpujob gpujob_gpu gpujob_check gpujob_options kfd kfd_topology sdma pattern report state
WORKLOADS_OBJECTS := $(WORKLOADS_SOURCES:%=$(WORKLOADS_DIR)/%.o)
WORKLOADS_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE
# <linux/kfd_ioctl.h> includes <drm/drm.h>, which Debian installs as <libdrm/drm.h>.
WORKLOADS_CPPFLAGS := -idirafter $(WORKLOADS_DIR)/include

.PHONY: workloads
workloads: $(WORKLOADS_PROGRAMS:%=$(WORKLOADS_DIR)/%)

$(WORKLOADS_DIR)/include/drm:
	mkdir -p $(@D)
	ln -sfn $$(pkg-config --variable=includedir libdrm)/libdrm $@

$(WORKLOADS_DIR)/%.o: tests/workloads/%.c | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CPPFLAGS) $(WORKLOADS_CFLAGS) -MMD -MP -c -o $@ $<

$(WORKLOADS_DIR)/gpujob: $(WORKLOADS_OBJECTS)
	$(CC) $(WORKLOADS_CFLAGS) -o $@ $^

-include $(WORKLOADS_OBJECTS:.o=.d)
