# SPDX-License-Identifier: Apache-2.0
# `make bench-image`: the L1 program of tools/nidus bench, $(BUILD)/bench/bench.elf. `make bench` runs it.

BENCH      := $(BUILD)/bench
BENCH_OBJS := $(patsubst %,$(BUILD)/%.o,$(wildcard tests/bench/*.c tests/bench/*.S))
BENCH_LIB  := $(patsubst %,$(BUILD)/%.o,$(wildcard tests/l1/lib/*.c tests/l1/lib/*.S))

.PHONY: bench bench-image bench-peer
bench-image: $(BENCH)/bench.elf

bench:
	@tools/setup run
	@$(MAKE) --no-print-directory -s -j$(JOBS) all bench-image
	BUILD=$(BUILD) tools/nidus bench --baseline tests/bench/baseline.json --check

# What `tools/nidus bench --peers` boots beside Nidus: Linux with KVM, and this image for its QEMU.
bench-peer: $(BENCH)/peer.cpio

$(BENCH)/peer.cpio: $(BENCH)/bench.elf $(BUILD)/client/made tests/bench/peer/image.py tests/bench/peer/init.sh
	$(PY) tests/bench/peer/image.py $(BUILD)/client $< $@

$(BUILD)/tests/bench/%.c.o: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(L1_FLAGS) -c $< -o $@

$(BUILD)/tests/bench/%.S.o: tests/bench/%.S
	@mkdir -p $(@D)
	$(CC) $(L1_FLAGS) -D__ASSEMBLY__ -c $< -o $@

# As the L1 programs: 64-bit code in an ELF32 container.
$(BENCH)/bench.elf: $(BENCH_OBJS) $(BENCH_LIB) tests/l1/lib/linker.ld
	@mkdir -p $(@D)
	$(CC) -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noexecstack -Wl,--no-warn-rwx-segments \
		-T tests/l1/lib/linker.ld $(BENCH_OBJS) $(BENCH_LIB) -o $(@:.elf=.elf64)
	objcopy -S -I elf64-x86-64 -O elf32-i386 $(@:.elf=.elf64) $@

-include $(patsubst %.o,%.d,$(BENCH_OBJS))
