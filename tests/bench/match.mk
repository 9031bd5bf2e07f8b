# SPDX-License-Identifier: GPL-2.0-only
# The matcher on machines of 64 GPUs: medians of CPU time, and the goals.

MATCH_BENCH := $(BUILD)/bench/match
MATCH_BENCH_SRCS := tests/bench/match.c $(match_SRCS) amdgpu_plugin_util.c

$(MATCH_BENCH): $(MATCH_BENCH_SRCS) | $(BUILD)/bench
	$(CC) $(BENCH_CFLAGS) -I. -MMD -MP -o $@ $(filter %.c,$^)

-include $(MATCH_BENCH).d

bench-match: $(MATCH_BENCH)
	$(MATCH_BENCH)
.PHONY: bench-match
