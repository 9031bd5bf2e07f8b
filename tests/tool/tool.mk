# SPDX-License-Identifier: GPL-2.0-only
# Tests of amdgpu-image: the command with sanitizers, which need memory without a limit, and a writer of images.

TOOL_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
TOOL_CHECK_SOURCES := $(wildcard tool/*.c match/*.c image/*.c kernel/*.c) host/settings.c host/criu.c host/bundle.c content/crc32c.c content/layout.c \
	amdgpu_plugin_drm.c amdgpu_plugin_topology.c amdgpu_plugin_util.c $(BUILD)/proto/criu-amdgpu.pb-c.c
TOOL_CHECK_CFLAGS = -std=gnu11 -g -O1 -Wall -Wextra -Werror -Wshadow -pthread -iquote . -I$(BUILD)/proto \
	$(shell $(PKG_CONFIG) --cflags $(PLUGIN_LIBS))

$(BUILD)/tool/amdgpu-image: $(TOOL_CHECK_SOURCES) $(wildcard *.h */*.h) $(PROTO_FILES) | $(BUILD)/tool
	$(CC) $(TOOL_CHECK_CFLAGS) -DMEMORY_MAX=RLIM_INFINITY $(TOOL_CFLAGS) $(TOOL_SANITIZE) -o $@ $(filter %.c,$^) $(TOOL_LDLIBS)

$(BUILD)/tool/make_images: tests/tool/make_images.c image/image.c image/file.c image/objects.c image/nodes.c image/hsakmt.c \
		content/crc32c.c kernel/state.c amdgpu_plugin_topology.c kernel/sysfs.c amdgpu_plugin_util.c \
		$(BUILD)/proto/criu-amdgpu.pb-c.c tests/unit/records_fixture.h $(wildcard image/*.h) | $(BUILD)/tool
	$(CC) $(TOOL_CHECK_CFLAGS) -Itests/unit -o $@ $(filter %.c,$^) $(TOOL_LDLIBS)

$(BUILD)/tool:
	mkdir -p $@

tool-build: $(BUILD)/$(TOOL) $(BUILD)/tool/amdgpu-image $(BUILD)/tool/make_images \
	$(BUILD)/images $(BUILD)/man/$(TOOL).1
.PHONY: tool-build
