# SPDX-License-Identifier: GPL-2.0-only
# GPU processes for the scenarios with the real criu: build/workloads/NAME.
# To be included from the top directory of the tree; target: workloads.

WORKLOADS_DIR := build/workloads
WORKLOADS_PROGRAMS := gpujob hsajob hipjob sharejob shareplay devcgroup streamer
WORKLOADS_SOURCES := gpujob gpujob_gpu gpujob_check gpujob_options gpujob_extra gpujob_threads gpujob_aql gpujob_busy gpujob_token \
	fdpass gem launch kfd kfd_topology sdma pattern report state
WORKLOADS_OBJECTS := $(WORKLOADS_SOURCES:%=$(WORKLOADS_DIR)/%.o)
SHAREJOB_SOURCES := sharejob sharejob_data sharejob_objects sharejob_send fdpass sharejob_handles sharejob_ipc \
	sharejob_vmm sharejob_dmabuf sharejob_files sharejob_refused sharejob_later gem launch kfd kfd_topology sdma pattern report state
SHAREJOB_OBJECTS := $(SHAREJOB_SOURCES:%=$(WORKLOADS_DIR)/%.o)
SHAREPLAY_SOURCES := shareplay shareplay_names fdpass gem launch kfd kfd_topology sdma pattern report state
SHAREPLAY_OBJECTS := $(SHAREPLAY_SOURCES:%=$(WORKLOADS_DIR)/%.o)
# On the HSA runtime, of which the machine's default userland has a newer one with the same interface.
HSAJOB_SOURCES := hsajob hsajob_gpu hsajob_share hsajob_code gpujob_busy pair fdpass launch pattern report state
HSAJOB_OBJECTS := $(HSAJOB_SOURCES:%=$(WORKLOADS_DIR)/%.o)
# On the HIP runtime, which is looked up where it runs.
HIPJOB_SOURCES := hipjob hipjob_memory hipjob_kernels hipjob_share hip gpujob_busy pair fdpass launch pattern report state
HIPJOB_OBJECTS := $(HIPJOB_SOURCES:%=$(WORKLOADS_DIR)/%.o)
WORKLOADS_CFLAGS := -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE
# <linux/kfd_ioctl.h> includes <drm/drm.h>, which Debian installs as <libdrm/drm.h>.
WORKLOADS_CPPFLAGS := -idirafter $(WORKLOADS_DIR)/include

.PHONY: workloads
workloads: $(WORKLOADS_PROGRAMS:%=$(WORKLOADS_DIR)/%) $(WORKLOADS_DIR)/other_plugin.so $(WORKLOADS_DIR)/failcalls.so

$(WORKLOADS_DIR)/include/drm:
	mkdir -p $(@D)
	ln -sfn $$(pkg-config --variable=includedir libdrm)/libdrm $@

$(WORKLOADS_DIR)/%.o: tests/workloads/%.c | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CPPFLAGS) $(WORKLOADS_CFLAGS) -MMD -MP -c -o $@ $<

$(WORKLOADS_DIR)/gpujob: $(WORKLOADS_OBJECTS)
	$(CC) $(WORKLOADS_CFLAGS) -o $@ $^ -pthread -lm

$(WORKLOADS_DIR)/hsajob: $(HSAJOB_OBJECTS)
	$(CC) $(WORKLOADS_CFLAGS) -o $@ $^ -lhsa-runtime64 -ldl -lm -pthread

$(WORKLOADS_DIR)/hipjob: $(HIPJOB_OBJECTS)
	$(CC) $(WORKLOADS_CFLAGS) -o $@ $^ -ldl -lm

$(WORKLOADS_DIR)/sharejob: $(SHAREJOB_OBJECTS)
	$(CC) $(WORKLOADS_CFLAGS) -o $@ $^

$(WORKLOADS_DIR)/shareplay: $(SHAREPLAY_OBJECTS)
	$(CC) $(WORKLOADS_CFLAGS) -o $@ $^

# Not a process: a plugin besides ours.
$(WORKLOADS_DIR)/other_plugin.so: tests/workloads/other_plugin.c host/criu.h | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CFLAGS) -I. -fPIC -shared -o $@ $<

# For LD_PRELOAD: calls of the driver that fail.
$(WORKLOADS_DIR)/failcalls.so: tests/workloads/failcalls.c | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CPPFLAGS) $(WORKLOADS_CFLAGS) -fPIC -shared -o $@ $<

# Not a workload: gives a cgroup a device filter as container engines do.
$(WORKLOADS_DIR)/devcgroup: tests/workloads/devcgroup.c kernel/devfilter.c kernel/device.c \
		kernel/mount.c | $(WORKLOADS_DIR)/include/drm
	$(CC) $(WORKLOADS_CFLAGS) -U_GNU_SOURCE -I. -MMD -MP -o $@ $(filter %.c,$^)

# Nor is this: stands in for criu-image-streamer.
$(WORKLOADS_DIR)/streamer: $(addprefix $(WORKLOADS_DIR)/,streamer.o fdpass.o report.o)
	$(CC) $(WORKLOADS_CFLAGS) -o $@ $^

-include $(WORKLOADS_DIR)/devcgroup.d $(WORKLOADS_DIR)/streamer.d $(WORKLOADS_OBJECTS:.o=.d) $(HSAJOB_OBJECTS:.o=.d) \
	$(HIPJOB_OBJECTS:.o=.d) $(SHAREJOB_OBJECTS:.o=.d) $(SHAREPLAY_OBJECTS:.o=.d)
