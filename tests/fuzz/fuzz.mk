# SPDX-License-Identifier: GPL-2.0-only
# Fuzz targets: tests/fuzz/fuzz_NAME.c and the modules that fuzz_NAME_SRCS lists, under libFuzzer.

FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_CC ?= clang
FUZZ_CFLAGS = -std=gnu11 -g -O1 -Wall -Wextra -Werror -Wshadow -I. -I$(BUILD)/proto \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	$(shell $(PKG_CONFIG) --cflags libprotobuf-c)
FUZZ_LDLIBS = $(shell $(PKG_CONFIG) --libs libprotobuf-c)

image_SRCS := $(addprefix image/,image.c nodes.c file.c objects.c) content/crc32c.c kernel/state.c $(topology_SRCS) \
	$(BUILD)/proto/criu-amdgpu.pb-c.c
fuzz_kfd_SRCS := $(image_SRCS)
fuzz_render_SRCS := $(image_SRCS)
fuzz_match_SRCS := $(sort $(image_SRCS) $(match_SRCS))
fuzz_pages_SRCS := content/pagesio.c content/layout.c
fuzz_topology_SRCS := $(topology_SRCS)
fuzz_records_SRCS := $(addprefix kernel/,queues.c placeholders.c state.c) $(topology_SRCS)
fuzz_settings_SRCS := host/settings.c amdgpu_plugin_topology.c
# The command but for its main(), and the plugin, which reads the records of suspended processes.
fuzz_tool_SRCS := $(filter-out tool/main.c,$(wildcard $(addsuffix /*.c,tool suspend checkpoint share pages match image stopped kernel \
	host content))) amdgpu_plugin_drm.c amdgpu_plugin_topology.c $(BUILD)/proto/criu-amdgpu.pb-c.c
fuzz_tool_LDLIBS = $(TOOL_LDLIBS)
fuzz_gcn_SRCS := $(wildcard tests/asicsim/gcn/*.c)
fuzz_tool_files_SRCS := $(fuzz_tool_SRCS)
fuzz_tool_files_LDLIBS = $(TOOL_LDLIBS)

define FUZZ_RULE
$(BUILD)/fuzz/$(1): $(call objects,fuzz,tests/fuzz/fuzz_$(1).c tests/fuzz/fuzz.c amdgpu_plugin_util.c amdgpu_plugin_version.c $(fuzz_$(1)_SRCS))
	$$(FUZZ_CC) $$(FUZZ_CFLAGS) -o $$@ $$^ $$(FUZZ_LDLIBS) $$(fuzz_$(1)_LDLIBS)
endef
$(foreach t,$(FUZZ_TARGETS),$(eval $(call FUZZ_RULE,$(t))))

$(BUILD)/fuzz/o/%.o: %.c $(PROTO_FILES)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ_CFLAGS) $(TOOL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(call dependencies,fuzz)

fuzz-build: $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)
# FUZZ_SECONDS=N: how long each target runs; FUZZ_ONLY="NAME...": which.
fuzz: fuzz-build
	tests/fuzz/run $(FUZZ_ONLY)
.PHONY: fuzz-build fuzz
