# SPDX-License-Identifier: GPL-2.0-only
# What tasks pay for the dma-bufs of others, by how many there are.

SHARE_BENCH := $(BUILD)/bench/share
SHARE_BENCH_SRCS := tests/bench/share.c share/table.c host/bundle.c amdgpu_plugin_util.c

$(SHARE_BENCH): $(SHARE_BENCH_SRCS) | $(BUILD)/bench
	$(CC) $(BENCH_CFLAGS) -I. -MMD -MP -o $@ $(filter %.c,$^)

-include $(SHARE_BENCH).d

# Whole dumps and restores in the machine.
$(BUILD)/bench/meshjob: tests/bench/meshjob.c $(BUFFERJOB_OBJECTS) $(WORKLOADS_DIR)/gem.o | $(BUILD)/bench
	$(CC) $(WORKLOADS_CPPFLAGS) $(BENCH_CFLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^)

bench-mesh: setup all
	@$(MAKE) --no-print-directory -s $(BUILD)/bench/meshjob
	@tests/bench/mesh $(BENCH_OPTIONS)
.PHONY: bench-mesh

bench-share: $(SHARE_BENCH)
	$(SHARE_BENCH)
.PHONY: bench-share
