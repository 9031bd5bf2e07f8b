# SPDX-License-Identifier: GPL-2.0-only
# What tasks pay for the dma-bufs of others, by how many there are.

SHARE_BENCH := $(BUILD)/bench/share
SHARE_BENCH_SRCS := tests/bench/share.c share/table.c share/bundle.c amdgpu_plugin_util.c

$(SHARE_BENCH): $(SHARE_BENCH_SRCS) | $(BUILD)/bench
	$(CC) $(BENCH_CFLAGS) -I. -MMD -MP -o $@ $(filter %.c,$^)

-include $(SHARE_BENCH).d

bench-share: $(SHARE_BENCH)
	$(SHARE_BENCH)
.PHONY: bench-share
