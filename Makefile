# SPDX-License-Identifier: Apache-2.0
# Nidus: `make` builds build/nidus.elf and build/nidus32.elf; the other targets are listed by `make help`.

BUILD ?= build
CC    := gcc
PY    := /usr/bin/python3
# `make V=1` shows the commands.
Q     := $(if $(V),,@)

# The floors of the house, upper to lower. Every .c and .S file in them is part of the image.
DIRS := boot hyperv nested hv hv/dev mm
SRCS ?= $(wildcard $(addsuffix /*.c,$(DIRS)) $(addsuffix /*.S,$(DIRS)))
OBJS := $(patsubst %,$(BUILD)/%.o,$(SRCS)) $(BUILD)/hv/dev/dsdt.o

WARN := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes -Wvla \
	-Wpointer-arith -Wundef -Wwrite-strings -Werror
# L0 uses no SSE, so a stack aligned to 8 bytes is enough; clang does not know that option, and lint leaves it out.
KFLAGS := -std=gnu11 -Oz -g -ffreestanding -fno-builtin -mno-red-zone -mgeneral-regs-only -fno-pic -fno-pie \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fno-omit-frame-pointer -fcf-protection=none \
	-mpreferred-stack-boundary=3 -mcmodel=small -fno-common -fno-strict-aliasing -ffunction-sections -fdata-sections $(WARN) -I. -MMD -MP

# The exit path is built for speed, the rest for size. A frame pointer costs three instructions a call; back-traces only lose these
# files' own frames.
HOT := hv/exit.c hv/exit_misc.c hv/exit_io.c hv/cpuid.c hv/msr.c hv/event.c hv/apicv.c hv/vcpu_regs.c hv/vmcs.c \
	hv/dev/ports.c hv/dev/machine.c hv/dev/vlapic.c hyperv/enlighten.c hyperv/evmcs_save.c hyperv/hypercall.c mm/guest_walk_fast.c mm/l1mem.c mm/guest_copy.c mm/ept.c \
	$(filter-out nested/check_% nested/caps.c nested/vmcs12.c nested/shadow_map.c nested/merge.c nested/msr_area.c nested/l2mem.c nested/events.c nested/l0_exits.c nested/functions.c nested/nested.c nested/posted.c nested/sept_range.c nested/watch.c nested/bitmap_watch.c nested/sept_sync.c nested/sept_root.c,$(wildcard nested/*.c))
$(patsubst %,$(BUILD)/%.o,$(HOT)): KFLAGS += -O2 -fomit-frame-pointer -fno-align-functions -fno-align-loops -fno-align-jumps -fno-align-labels

.PHONY: all clean help run demo iso test test-all boots lint format size
all: $(BUILD)/nidus.elf $(BUILD)/nidus32.elf

$(BUILD)/%.c.o: %.c Makefile | $(BUILD)/hv/offsets.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(KFLAGS) -c $< -o $@

$(BUILD)/%.S.o: %.S | $(BUILD)/hv/offsets.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(KFLAGS) -D__ASSEMBLY__ -I$(BUILD) -c $< -o $@

# Structure offsets for assembly, computed by the compiler: hv/offsets.in is compiled to text, never linked.
$(BUILD)/hv/offsets.h: hv/offsets.in $(wildcard hv/*.h)
	@mkdir -p $(@D)
	$(Q)$(CC) $(KFLAGS) -x c -S $< -o $(BUILD)/hv/offsets.s
	@sed -n 's/^.*->\([A-Z0-9_]*\) \$$*\([-0-9]*\).*/#define \1 \2/p' $(BUILD)/hv/offsets.s > $@

# The DSDT of an L1 guest, compiled by iasl into a C array.
$(BUILD)/hv/dev/dsdt.c: hv/dev/dsdt.asl
	@mkdir -p $(@D)
	$(Q)iasl -p $(BUILD)/hv/dev/dsdt $< > $(BUILD)/hv/dev/iasl.log || { cat $(BUILD)/hv/dev/iasl.log; false; }
	$(Q)tools/bin2c dsdt_aml $(BUILD)/hv/dev/dsdt.aml > $@

$(BUILD)/hv/dev/dsdt.o: $(BUILD)/hv/dev/dsdt.c
	$(Q)$(CC) $(KFLAGS) -c $< -o $@

# Two links: the second adds the names of the functions, for back-traces, which moves none of them.
LINK = $(CC) -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,max-page-size=4096 -Wl,-z,noexecstack -Wl,--gc-sections \
	-T linker.ld

$(BUILD)/nidus.first.elf: $(OBJS) linker.ld
	$(Q)$(LINK) $(OBJS) -o $@

$(BUILD)/symbols.S: $(BUILD)/nidus.first.elf tools/symbols
	$(Q)tools/symbols $< > $@

$(BUILD)/nidus.elf: $(BUILD)/symbols.S
	@echo LINK $@
	$(Q)$(CC) -Wa,--fatal-warnings -c $< -o $(BUILD)/symbols.o
	$(Q)$(LINK) $(OBJS) $(BUILD)/symbols.o -o $@

# The same image in an ELF32 container, for multiboot1-only loaders and `qemu -kernel`.
$(BUILD)/nidus32.elf: $(BUILD)/nidus.elf
	$(Q)objcopy -I elf64-x86-64 -O elf32-i386 $< $@

# --- Running and testing. tools/setup installs what is missing; without anything missing it does nothing.

DEMO   := --guest name=demo,kernel=$(BUILD)/l1/demo.elf,mem=64M
JOBS   ?= $(shell nproc)
PYTEST  = BUILD=$(BUILD) $(PY) -m pytest tests -v -n $(JOBS) --dist loadgroup

help:
	@echo 'make            the image: build/nidus.elf, build/nidus32.elf'
	@echo 'make run        the demo guest in an emulator (installs what is missing)'
	@echo 'make iso        build/demo.iso, bootable on BIOS and UEFI machines'
	@echo 'make test       lint, unit tests, L1 programs, boots, quick clients'
	@echo 'make test-all   the same with the long clients'
	@echo 'make lint | unit | l1 | client    parts of it'
	@echo 'make bench      what operations cost, beside the baseline and KVM'
	@echo 'make format | size | clean        clang-format -i; image and source size; remove build/'
	@echo 'tools/nidus run|iso --help        guests of your own'

run demo:
	@tools/setup run
	@$(MAKE) --no-print-directory -s -j$(JOBS) all $(BUILD)/l1/demo.elf
	BUILD=$(BUILD) tools/nidus run $(DEMO) --timeout 120

iso:
	@tools/setup run
	@$(MAKE) --no-print-directory -s -j$(JOBS) all $(BUILD)/l1/demo.elf
	BUILD=$(BUILD) tools/nidus iso $(DEMO) -o $(BUILD)/demo.iso

boots:
	@tools/setup
	@$(MAKE) --no-print-directory -j$(JOBS) all l1 boot-kernels client
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory unit

test: boots
	$(PYTEST) -m 'not long'

test-all: boots
	$(PYTEST)

lint: all l1
	@BUILD='$(BUILD)' KFLAGS='$(filter-out -mpreferred-stack-boundary=3,$(KFLAGS))' L1_FLAGS='$(L1_FLAGS)' tools/lint $(CHECKS)

format:
	clang-format -i $$(find $(DIRS) tests -name '*.[ch]')

size: all
	@size $(BUILD)/nidus.elf | awk 'NR == 2 { printf "image: text %d, data %d, bss %d; text+data %.1f KiB\n", $$1, $$2, $$3, ($$1 + $$2) / 1024 }'
	@for dir in $(DIRS) tests/unit tests/fuzz tests/l1 tests/bench tests/boot tests/client tools; do \
		find $$dir $$(test $$dir != hv || echo -maxdepth 1) -type f -not -name '*.pyc' -exec cat {} + | wc -l | sed "s|^|$$dir: |; s|$$| lines|"; done

clean:
	rm -rf $(BUILD)

include $(wildcard tests/*/build.mk)
-include $(patsubst %.o,%.d,$(OBJS))
