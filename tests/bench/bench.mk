# SPDX-License-Identifier: GPL-2.0-only
# Measurements, see README.md here. bench: real criu in the machine. bench-native: the content
# engine by itself, on GPUs that are simulated in the process.

BENCH_CFLAGS := -std=gnu11 -g -O2 -Wall -Wextra -Werror -Wshadow -pthread

$(BUILD)/bench:
	mkdir -p $@

# ---- in the machine ----

$(BUILD)/bench/watch: tests/bench/watch.c | $(BUILD)/bench
	$(CC) $(BENCH_CFLAGS) -MMD -MP -o $@ $<

BUFFERJOB_OBJECTS := $(addprefix $(WORKLOADS_DIR)/,kfd.o kfd_topology.o pattern.o report.o sdma.o)
$(BUILD)/bench/bufferjob: tests/bench/bufferjob.c $(BUFFERJOB_OBJECTS) | $(BUILD)/bench
	$(CC) $(WORKLOADS_CPPFLAGS) $(BENCH_CFLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^)

$(BUILD)/bench/submit: tests/bench/submit.c amdgpu_plugin_util.c | $(BUILD)/bench
	$(CC) $(shell $(PKG_CONFIG) --cflags libdrm_amdgpu) $(BENCH_CFLAGS) -I. -MMD -MP -o $@ $(filter %.c,$^) \
		$(shell $(PKG_CONFIG) --libs libdrm_amdgpu)

bench-build: all $(addprefix $(BUILD)/bench/,watch bufferjob submit meshjob share content_native)
bench: setup
	@$(MAKE) --no-print-directory -s bench-build
	@tests/bench/machine $(BENCH_OPTIONS)
# Against the plugin of CRIU's source.
bench-peer: setup
	@$(MAKE) --no-print-directory -s bench-build $(BUILD)/interop/4.2.1/amdgpu_plugin.so
	@tests/bench/peer $(BENCH_OPTIONS)
# Processes on GPUs of their own.
bench-ranks: setup
	@$(MAKE) --no-print-directory -s bench-build
	@tests/bench/ranks $(BENCH_OPTIONS)
.PHONY: bench bench-build bench-peer bench-ranks

# ---- in the process ----

CONTENT_BENCH := $(BUILD)/bench/content_native
CONTENT_BENCH_SRCS := tests/bench/content_native.c tests/bench/content_reference.c tests/unit/content_fixture.c \
	$(content_SRCS) amdgpu_plugin_util.c $(fake_drm_SRCS)

$(CONTENT_BENCH): $(CONTENT_BENCH_SRCS) | $(BUILD)/bench
	$(CC) $(BENCH_CFLAGS) -I. -Itests/unit -Itests/bench $(shell $(PKG_CONFIG) --cflags libdrm_amdgpu) \
		-MMD -MP -o $@ $(filter %.c,$^) -Wl,--wrap=pread,--wrap=pwrite,--wrap=pthread_create

# Without the tunable, memcpy() of some processors is five times slower where the addresses differ by a few bytes, as
# those of the engine do by the length prefix of the file; a GPU does not mind. It holds for both sides.
bench-native: $(CONTENT_BENCH)
	GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=0x1000000000 $(CONTENT_BENCH) --json $(BUILD)/bench/content_native.json $(BENCH_OPTIONS)
.PHONY: bench-native

-include $(wildcard $(BUILD)/bench/*.d)

# Bars from the tables of README.md here, rates and phases from tests/bench/figures, which "make bench-pictures" measures again.
PICTURES := docs/img
pictures:
	mkdir -p $(PICTURES)
	for what in dump restore; do awk -v section="bench-peer: against" -v what=$$what \
		-v title="seconds of a $$what, GPU and disk at 20 MB/s each" \
		-v note="CRIU's plugin uses one of the two simulated engines of a GPU, which moves 10 MB/s." -f tests/bench/bars.awk tests/bench/README.md \
		>$(PICTURES)/peer-$$what.svg && awk -v name="a $$what of two GPUs" -v limit=20 -f tests/bench/plot.awk \
		tests/bench/figures/$$what.rates >$(PICTURES)/rates-$$what.svg && awk -v title="what a $$what does when" \
		-f tests/bench/spans.awk tests/bench/figures/$$what.phases >$(PICTURES)/phases-$$what.svg || exit 1; done
	awk -v section="bench-ranks: time" -v what=ranks -v title="time by number of processes, relative to one process" \
		-f tests/bench/bars.awk tests/bench/README.md >$(PICTURES)/ranks.svg
bench-pictures: setup
	@$(MAKE) --no-print-directory -s bench-build
	@tests/bench/machine --pictures --divide 4 --rate 20
.PHONY: pictures bench-pictures
