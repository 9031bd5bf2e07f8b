# SPDX-License-Identifier: GPL-2.0-only
# GPU processes for the scenarios with the real criu: build/workloads/NAME.
# To be included from the top directory of the tree; target: workloads.

WORKLOADS_DIR := build/workloads
WORKLOADS_PROGRAMS := gpujob hsajob hipjob rccljob sharejob shareplay streamer foreignfs devcgroup
WORKLOADS_BASE := fdpass launch pattern report state
WORKLOADS_KFD := $(WORKLOADS_BASE) gem kfd kfd_topology sdma
gpujob_OBJECTS := gpujob gpujob_gpu gpujob_check gpujob_options gpujob_extra gpujob_threads gpujob_aql gpujob_busy gpujob_token gpujob_discard gpujob_reads \
	$(WORKLOADS_KFD)
sharejob_OBJECTS := sharejob sharejob_data sharejob_objects sharejob_send sharejob_steps sharejob_cases \
	sharejob_later $(WORKLOADS_KFD)
shareplay_OBJECTS := shareplay shareplay_names $(WORKLOADS_KFD)
# On the HSA runtime, of which the machine's default userland has a newer one with the same interface.
hsajob_OBJECTS := hsajob hsajob_gpu hsajob_share hsajob_code hsajob_kernel hsajob_failing gpujob_busy job pair $(WORKLOADS_BASE)
hsajob_LIBS := -lhsa-runtime64 -ldl
# On the HIP runtime, which is looked up where it runs.
hipjob_OBJECTS := hipjob hipjob_memory hipjob_kernels hipjob_share hip gpujob_busy job pair $(WORKLOADS_BASE)
hipjob_LIBS := -ldl
# On RCCL, likewise.
rccljob_OBJECTS := rccljob hip job pair $(WORKLOADS_BASE)
rccljob_LIBS := -ldl
# Not a workload: stands in for criu-image-streamer.
streamer_OBJECTS := streamer fdpass report
# Nor this: a file system of somebody else's.
foreignfs_OBJECTS := foreignfs report
WORKLOADS_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE
# <linux/kfd_ioctl.h> includes <drm/drm.h>, which Debian installs as <libdrm/drm.h>.
WORKLOADS_CPPFLAGS := -idirafter $(WORKLOADS_DIR)/include

.PHONY: workloads
workloads: $(WORKLOADS_PROGRAMS:%=$(WORKLOADS_DIR)/%) $(WORKLOADS_DIR)/other_plugin.so $(WORKLOADS_DIR)/failcalls.so $(WORKLOADS_DIR)/crowd.so

$(WORKLOADS_DIR)/include/drm:
	mkdir -p $(@D)
	ln -sfn $$(pkg-config --variable=includedir libdrm)/libdrm $@

$(WORKLOADS_DIR)/%.o: tests/workloads/%.c | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CPPFLAGS) $(WORKLOADS_CFLAGS) -MMD -MP -c -o $@ $<

define WORKLOADS_LINK
$(WORKLOADS_DIR)/$(1): $$($(1)_OBJECTS:%=$(WORKLOADS_DIR)/%.o)
	$$(CC) $$(WORKLOADS_CFLAGS) -o $$@ $$^ $$($(1)_LIBS) -lm -pthread
endef
$(foreach p,$(filter-out devcgroup,$(WORKLOADS_PROGRAMS)),$(eval $(call WORKLOADS_LINK,$(p))))

# Not a process: a plugin besides ours.
$(WORKLOADS_DIR)/other_plugin.so: tests/workloads/other_plugin.c host/criu.h | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CFLAGS) -I. -fPIC -shared -o $@ $<

# For LD_PRELOAD: calls of the driver that fail, and what a program may have besides.
$(WORKLOADS_DIR)/failcalls.so $(WORKLOADS_DIR)/crowd.so: $(WORKLOADS_DIR)/%.so: tests/workloads/%.c | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CPPFLAGS) $(WORKLOADS_CFLAGS) -fPIC -shared -o $@ $<

# Not a workload: gives a cgroup a device filter as container engines do.
$(WORKLOADS_DIR)/devcgroup: tests/workloads/devcgroup.c kernel/devfilter.c kernel/device.c \
		kernel/mount.c amdgpu_plugin_util.c | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CFLAGS) -U_GNU_SOURCE -I. -MMD -MP -o $@ $(filter %.c,$^)

-include $(wildcard $(WORKLOADS_DIR)/*.d)
