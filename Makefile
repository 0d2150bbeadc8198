# SPDX-License-Identifier: Apache-2.0
# Nidus: `make` builds build/nidus.elf and build/nidus32.elf; the other targets are listed by `make help`.

BUILD ?= build
CC    := gcc
PY    := /usr/bin/python3

# The floors of the house, upper to lower. Every .c and .S file in them is part of the image.
DIRS := boot hyperv nested hv hv/dev mm
SRCS ?= $(wildcard $(addsuffix /*.c,$(DIRS)) $(addsuffix /*.S,$(DIRS)))
OBJS := $(patsubst %,$(BUILD)/%.o,$(SRCS)) $(BUILD)/hv/dev/dsdt.o

WARN := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes -Wvla \
	-Wpointer-arith -Wundef -Wwrite-strings -Werror
KFLAGS := -std=gnu11 -O2 -g -ffreestanding -fno-builtin -mno-red-zone -mgeneral-regs-only -fno-pic -fno-pie \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fno-omit-frame-pointer -fcf-protection=none \
	-mcmodel=small -fno-common -fno-strict-aliasing -ffunction-sections -fdata-sections $(WARN) -I. -MMD -MP

.PHONY: all clean help
all: $(BUILD)/nidus.elf $(BUILD)/nidus32.elf

$(BUILD)/%.c.o: %.c | $(BUILD)/hv/offsets.h
	@mkdir -p $(@D)
	$(CC) $(KFLAGS) -c $< -o $@

$(BUILD)/%.S.o: %.S | $(BUILD)/hv/offsets.h
	@mkdir -p $(@D)
	$(CC) $(KFLAGS) -D__ASSEMBLY__ -I$(BUILD) -c $< -o $@

# Structure offsets for assembly, computed by the compiler: hv/offsets.c is compiled to text, never linked.
$(BUILD)/hv/offsets.h: hv/offsets.in.c $(wildcard hv/*.h)
	@mkdir -p $(@D)
	$(CC) $(KFLAGS) -S $< -o $(BUILD)/hv/offsets.s
	@sed -n 's/^.*->\([A-Z0-9_]*\) \$$*\([-0-9]*\).*/#define \1 \2/p' $(BUILD)/hv/offsets.s > $@

# The DSDT of an L1 guest, compiled by iasl into a C array.
$(BUILD)/hv/dev/dsdt.c: hv/dev/dsdt.asl
	@mkdir -p $(@D)
	iasl -p $(BUILD)/hv/dev/dsdt $< > $(BUILD)/hv/dev/iasl.log || { cat $(BUILD)/hv/dev/iasl.log; false; }
	tools/bin2c dsdt_aml $(BUILD)/hv/dev/dsdt.aml > $@

$(BUILD)/hv/dev/dsdt.o: $(BUILD)/hv/dev/dsdt.c
	$(CC) $(KFLAGS) -c $< -o $@

$(BUILD)/nidus.elf: $(OBJS) linker.ld
	$(CC) -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,max-page-size=4096 -Wl,-z,noexecstack \
		-Wl,--gc-sections -T linker.ld $(OBJS) -o $@

# The same image in an ELF32 container, for multiboot1-only loaders and `qemu -kernel`.
$(BUILD)/nidus32.elf: $(BUILD)/nidus.elf
	objcopy -I elf64-x86-64 -O elf32-i386 $< $@

clean:
	rm -rf $(BUILD)

include $(wildcard tests/*/build.mk)
-include $(patsubst %.o,%.d,$(OBJS))
