# SPDX-License-Identifier: GPL-2.0-only
# Tests and the demonstration. The machine in which most of them run: tests/vm.

include tests/conformance/conformance.mk

# ---- unit tests: tests/unit/test_NAME.c and the modules that test_NAME_SRCS lists ----

UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
# Stand-ins have the parameters of what they stand for, which they need not use.
UNIT_CFLAGS = -std=gnu11 -g -O1 -Wall -Wextra -Wno-unused-parameter -Werror -Wshadow -pthread -I. -Itests/unit \
	-I$(BUILD)/proto $(shell $(PKG_CONFIG) --cflags $(PLUGIN_LIBS) cmocka) -DTEST_DATA='"tests/unit/data"'
UNIT_LDLIBS = $(shell $(PKG_CONFIG) --libs cmocka libprotobuf-c)
SANITIZE_plain :=
SANITIZE_tsan := -fsanitize=thread -fno-omit-frame-pointer
SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer

include tests/asicsim/gcn/gcn.mk
include tests/unit/unit.mk

# Each file is compiled once for all programs of a kind, $(1): but for a test's own file, flags are the same.
objects = $(patsubst %.c,$(BUILD)/$(1)/o/%.o,$(2))
dependencies = $(wildcard $(addsuffix .d,$(addprefix $(BUILD)/$(1)/o/,* */* */*/* */*/*/*)))
define UNIT_RULES
$(BUILD)/unit-$(2)/$(1): $(call objects,unit-$(2),tests/unit/$(1).c amdgpu_plugin_util.c amdgpu_plugin_version.c $($(1)_SRCS))
	$$(CC) -pthread $$(SANITIZE_$(2)) -o $$@ $$^ $$($(1)_LDFLAGS) -Wl,-z,defs $$(UNIT_LDLIBS) $$($(1)_LDLIBS)
$(BUILD)/unit-$(2)/o/tests/unit/$(1).o: UNIT_CFLAGS += $$($(1)_CFLAGS)
endef
define UNIT_OBJECTS
$(BUILD)/unit-$(1)/o/%.o: %.c $(PROTO_FILES)
	@mkdir -p $$(@D)
	$$(CC) $$(UNIT_CFLAGS) $$(SANITIZE_$(1)) -MMD -MP -c -o $$@ $$<
endef
$(foreach t,$(UNIT_TESTS),$(eval $(call UNIT_RULES,$(t),plain))$(eval $(call UNIT_RULES,$(t),asan)))
$(foreach t,$(TSAN_TESTS),$(eval $(call UNIT_RULES,$(t),tsan)))
$(foreach k,plain asan tsan,$(eval $(call UNIT_OBJECTS,$(k))))

-include $(call dependencies,unit-*)

include tests/bench/bench.mk
include tests/bench/share.mk

unit-build: $(UNIT_TESTS:%=$(BUILD)/unit-asan/%) $(TSAN_TESTS:%=$(BUILD)/unit-tsan/%)
# Those in which each call fails once.
FAULT_TESTS := $(filter test_faults%,$(UNIT_TESTS))
unit-plain-build: $(UNIT_TESTS:%=$(BUILD)/unit-plain/%)
# No tests by themselves: tests/unit/docs compares what they print with the documents.
print_settings_SRCS := host/settings.c amdgpu_plugin_topology.c
print_support_SRCS := $(test_limits_SRCS)
$(foreach p,print_settings print_support,$(eval $(call UNIT_RULES,$(p),plain)))
unit-build: $(BUILD)/unit-plain/print_settings $(BUILD)/unit-plain/print_support
unit: unit-build
	tests/check unit
# The name under which CRIU's tree builds and runs the plugin's unit tests.
amdgpu_plugin_test: unit
# What CRIU's CI builds and runs at its top: the choice of GPUs.
test_topology_remap: $(BUILD)/unit-plain/test_match
	printf '#!/bin/sh\ncd "$$(dirname "$$0")" && exec %s\n' $< >$@
	chmod 755 $@
.PHONY: unit-build unit-plain-build unit amdgpu_plugin_test

include tests/fuzz/fuzz.mk
include tests/tool/tool.mk

# ---- stand-ins for criu, one for each number of hooks that a version has had ----

HOST_HOOKS := 10 12 13 15 16 17
$(BUILD)/host/host-%: tests/host/host.c
	mkdir -p $(@D)
	$(CC) -std=gnu11 -g -O1 -Wall -Wextra -Werror -I. -DHOOKS=$* -rdynamic -o $@ $< -ldl
hosts: $(HOST_HOOKS:%=$(BUILD)/host/host-%)
.PHONY: hosts

# ---- the other compiler ----

clang-build:
	$(MAKE) --no-print-directory CC=clang BUILD=$(BUILD)/clang PLUGIN_SOBJ=$(BUILD)/clang/amdgpu_plugin.so \
		$(BUILD)/clang/amdgpu_plugin.so
.PHONY: clang-build

# ---- the plugin of CRIU's own source, for tests of ours against it ----

EXISTING := $(patsubst %,$(BUILD)/interop/%/amdgpu_plugin.so,4.1.1 4.2.1)
$(EXISTING): $(BUILD)/interop/%/amdgpu_plugin.so: tests/interop/build-existing
	tests/interop/build-existing $* $@
# Of the version that is next, with CRIU's source in the directory CRIU_TREE; not among what "interop" makes.
$(BUILD)/interop/4.3/amdgpu_plugin.so: tests/interop/build-existing
	tests/interop/build-existing 4.3 $@ $(or $(CRIU_TREE),$(error say where the source of CRIU is: CRIU_TREE=DIRECTORY))
# An HSA runtime of ROCm that the machine's userland is too old for.
ROCM_NEWER := $(BUILD)/interop/rocm/version
$(ROCM_NEWER): tests/interop/get-rocm
	tests/interop/get-rocm $(@D)
# RCCL, with the runtimes that it needs.
RCCL := $(BUILD)/interop/rccl/version
$(RCCL): tests/interop/get-rocm tests/interop/unpack-gpu
	tests/interop/get-rocm $(@D) librccl1 librocm-smi64-7
# rocRAND with its tests.
ROCRAND := $(BUILD)/interop/rocrand/version
$(ROCRAND): tests/interop/get-rocm
	tests/interop/get-rocm $(@D) librocrand1 librocrand1-tests
interop: $(EXISTING) $(ROCM_NEWER) $(RCCL) $(ROCRAND)
.PHONY: interop

# ---- what people run ----

setup:
	tests/vm/setup
.PHONY: setup

$(BUILD)/workloads/pressure: tests/asicsim/pressure.c
	mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror $$($(PKG_CONFIG) --cflags libdrm_amdgpu) -o $@ $< -ldrm_amdgpu -ldrm

tests-build: all gcn-programs workloads $(BUILD)/workloads/pressure
.PHONY: tests-build

demo: setup
	@$(MAKE) --no-print-directory -s tests-build
	@tests/demo/run
demo-llama: setup
	@$(MAKE) --no-print-directory -s tests-build
	@tests/demo/run --llama
.PHONY: demo demo-llama

# What the suites of "make check" run. Images of the machine are fetched and unpacked while this machine compiles; the driver
# needs them. Nothing is prepared while a suite runs.
CHECK_BUILD := tests-build unit-build tool-build hosts
ready-check: $(CHECK_BUILD) $(FAULT_TESTS:%=$(BUILD)/unit-plain/%) machine-build deb
machine-build: setup
	tests/vm/kbuild --driver 6.12 tests/asicsim
ready-check-all: unit-plain-build clang-build fuzz-build bench-build conformance
.PHONY: ready-check ready-check-all machine-build

deb:
	@debian/build
rpm:
	@rpm/build
.PHONY: deb rpm

check-quick:
	@tests/check --quick --time
	@tests/vm/setup --packages-only
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(CHECK_BUILD) machine-build
	@tests/check --quick

check:
	@tests/check --time
	@tests/vm/setup --packages-only
	@$(MAKE) --no-print-directory -s -j$$(nproc) ready-check
	@tests/check

# Not every mirror has the sources that interop wants: then CHECK_WITHOUT=interop leaves out the scenarios that need them.
check-all:
	@tests/check --all --time
	@tests/vm/setup --packages-only
	@$(MAKE) --no-print-directory -s -j$$(nproc) ready-check ready-check-all
	@[ '$(CHECK_WITHOUT)' = interop ] || $(MAKE) --no-print-directory -s interop
	@tests/check --all
check-engines:
	@tests/vm/setup
	@$(MAKE) --no-print-directory -s tests-build
	@tests/check --all engines
.PHONY: check-quick check check-all check-engines

# Dumps and restores that are disturbed at random, for MINUTES (60), from SEED on; ROUNDS: faults, share, suspend, rccl or several.
torture: setup
	@$(MAKE) --no-print-directory -s tests-build
	@MINUTES='$(MINUTES)' SEED='$(SEED)' ROUNDS='$(ROUNDS)' tests/torture/run
.PHONY: torture

# The product broken in one place after the other: a unit program has to notice each; MUTANTS: names in tests/mutants/table.
mutants: setup
	@tests/mutants/run $(MUTANTS)
.PHONY: mutants

vm-shell: setup
	@$(MAKE) --no-print-directory -s tests-build
	@tests/vm/run --shell
.PHONY: vm-shell
