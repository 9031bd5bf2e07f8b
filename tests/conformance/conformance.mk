# SPDX-License-Identifier: GPL-2.0-only
# Programs that say what the plugin relies on of the driver's interface: build/conformance/NAME, one per .c file here.
# To be included from the top directory of the tree; target: conformance. They run in the test machine.

CONFORMANCE_DIR := build/conformance
CONFORMANCE_SOURCES := $(wildcard tests/conformance/*.c)
CONFORMANCE_PROGRAMS := $(CONFORMANCE_SOURCES:tests/conformance/%.c=$(CONFORMANCE_DIR)/%)
CONFORMANCE_CFLAGS := -std=gnu11 -O1 -g -Wall -Wextra -Werror -D_GNU_SOURCE -I. -idirafter $(CONFORMANCE_DIR)/include
# What render nodes are asked by, the packets of SDMA, and the data, are those of the workloads.
CONFORMANCE_OBJECTS := $(addprefix build/workloads/,fdpass.o gem.o kfd.o kfd_topology.o pattern.o report.o sdma.o)

.PHONY: conformance
conformance: $(CONFORMANCE_PROGRAMS)

# <linux/kfd_ioctl.h> includes <drm/drm.h>, which Debian installs as <libdrm/drm.h>.
$(CONFORMANCE_DIR)/include/drm:
	mkdir -p $(@D)
	ln -sfn $$(pkg-config --variable=includedir libdrm)/libdrm $@

$(CONFORMANCE_DIR)/%: tests/conformance/%.c $(CONFORMANCE_OBJECTS) | $(CONFORMANCE_DIR)/include/drm
	$(CC) $(CONFORMANCE_CFLAGS) $$(pkg-config --cflags libdrm_amdgpu) -MMD -MP -MF $@.d -o $@ \
		$(filter %.c %.o,$^) -pthread

-include $(CONFORMANCE_PROGRAMS:=.d)
