# SPDX-License-Identifier: Apache-2.0
# L1 programs: build/l1/NAME.elf for each tests/l1/NAME/main.c, linked with tests/l1/lib.

L1_LIB_SRCS := $(wildcard tests/l1/lib/*.c tests/l1/lib/*.S)
L1_LIB_OBJS := $(patsubst %,$(BUILD)/%.o,$(L1_LIB_SRCS))
L1_NAMES    := $(patsubst tests/l1/%/main.c,%,$(wildcard tests/l1/*/main.c))
L1_OBJS     := $(patsubst %,$(BUILD)/%.o,$(filter-out tests/l1/lib/%,$(wildcard tests/l1/*/*.c)))
L1_ELFS     := $(patsubst %,$(BUILD)/l1/%.elf,$(L1_NAMES))
L1_FLAGS    := -std=gnu11 -O2 -g -ffreestanding -fno-builtin -mno-red-zone -mgeneral-regs-only -fno-pic -fno-pie \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -mcmodel=small -fno-common \
	-fno-strict-aliasing $(WARN) -Itests/l1/lib -MMD -MP

.PHONY: l1
.SECONDARY: $(L1_LIB_OBJS) $(L1_OBJS)
l1: $(L1_ELFS)

$(BUILD)/tests/l1/%.c.o: tests/l1/%.c
	@mkdir -p $(@D)
	$(CC) $(L1_FLAGS) -c $< -o $@

$(BUILD)/tests/l1/%.S.o: tests/l1/%.S
	@mkdir -p $(@D)
	$(CC) $(L1_FLAGS) -D__ASSEMBLY__ -c $< -o $@

# 64-bit code in an ELF32 container, for loaders that know multiboot1 only. Every .c file of the program's folder belongs to it.
.SECONDEXPANSION:
$(BUILD)/l1/%.elf: $$(addsuffix .o,$$(addprefix $(BUILD)/,$$(wildcard tests/l1/$$*/*.c))) $(L1_LIB_OBJS) tests/l1/lib/linker.ld
	@mkdir -p $(@D)
	$(CC) -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noexecstack -Wl,--no-warn-rwx-segments \
		-T tests/l1/lib/linker.ld $(filter %.o,$^) -o $(@:.elf=.elf64)
	objcopy -S -I elf64-x86-64 -O elf32-i386 $(@:.elf=.elf64) $@

-include $(patsubst %.o,%.d,$(L1_LIB_OBJS) $(L1_OBJS))
