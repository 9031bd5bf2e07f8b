# SPDX-License-Identifier: GPL-2.0-only
# Tests of amdgpu-checkpoint: the command with sanitizers, which need memory without a limit, and a writer of images.

# Of the objects of the unit programs, which are made with the same sanitizers.
tool_objects = $(call objects,unit-asan,$(1) amdgpu_plugin_topology.c amdgpu_plugin_util.c $(BUILD)/proto/criu-amdgpu.pb-c.c) \
	$(BUILD)/plugin/amdgpu_plugin_version.o
TOOL_CHECK_SOURCES := $(wildcard $(addsuffix /*.c,tool suspend checkpoint share pages match image stopped kernel host content)) amdgpu_plugin_drm.c
WRITER_SOURCES := $(filter-out tool/%,$(TOOL_CHECK_SOURCES))

$(BUILD)/unit-asan/o/tool/%.o: UNIT_CFLAGS += -DMEMORY_MAX=RLIM_INFINITY $(TOOL_CFLAGS)
$(BUILD)/tool/amdgpu-checkpoint: $(call tool_objects,$(TOOL_CHECK_SOURCES)) | $(BUILD)/tool
	$(CC) -pthread $(SANITIZE_asan) -o $@ $^ $(TOOL_LDLIBS)

WRAPPED := $(addprefix suspend_,processes lock resume)

$(BUILD)/tool/verbs: $(call tool_objects,tests/tool/verbs.c $(TOOL_CHECK_SOURCES)) | $(BUILD)/tool
	$(CC) -pthread $(SANITIZE_asan) $(WRAPPED:%=-Wl,--wrap=%) -o $@ $^ $(TOOL_LDLIBS)

$(BUILD)/tool/make_images: $(call tool_objects,tests/tool/make_images.c $(WRITER_SOURCES)) | $(BUILD)/tool
	$(CC) -pthread $(SANITIZE_asan) -o $@ $^ $(TOOL_LDLIBS)

$(BUILD)/tool/make_record: $(call tool_objects,tests/tool/make_record.c $(WRITER_SOURCES)) | $(BUILD)/tool
	$(CC) -pthread $(SANITIZE_asan) -o $@ $^ $(TOOL_LDLIBS)

$(BUILD)/tool:
	mkdir -p $@

tool-build: $(BUILD)/$(TOOL) $(BUILD)/tool/amdgpu-checkpoint $(addprefix $(BUILD)/tool/,make_images make_record verbs) \
	$(BUILD)/images $(BUILD)/man/$(TOOL).8 $(BUILD)/man/$(TOOL)-json.5
.PHONY: tool-build
