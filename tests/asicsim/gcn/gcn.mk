# SPDX-License-Identifier: GPL-2.0-only
# Code for the simulated chip's compute units: build/gcn/NAME.bin of tests/asicsim/gcn/programs/NAME.cl, descriptors first, and NAME.co as
# runtimes load it.

GCN_PROGRAMS := $(BUILD)/gcn/kernels.bin $(patsubst %,$(BUILD)/gcn/%.bin,busy private failing) \
	$(patsubst %,$(BUILD)/gcn/%.co,busy private failing)
GCN_FLAGS := -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx908 -nogpulib -O2 -ffp-contract=off -Wall -Wextra -Werror

$(BUILD)/gcn/%.bin: tests/asicsim/gcn/programs/%.cl tests/asicsim/gcn/programs/kernels.lds $(wildcard tests/asicsim/gcn/programs/*.h)
	mkdir -p $(@D)
	clang $(GCN_FLAGS) -c -o $(@:.bin=.o) $<
	ld.lld -T tests/asicsim/gcn/programs/kernels.lds --oformat=binary -o $@ $(@:.bin=.o)
$(BUILD)/gcn/%.co: tests/asicsim/gcn/programs/%.cl $(wildcard tests/asicsim/gcn/programs/*.h)
	mkdir -p $(@D)
	clang $(GCN_FLAGS) -o $@ $<
gcn-programs: $(GCN_PROGRAMS)
.PHONY: gcn-programs
