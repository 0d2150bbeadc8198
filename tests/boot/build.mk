# SPDX-License-Identifier: Apache-2.0
# Small 32-bit multiboot1 kernels that tests/boot runs as guests: build/boot/NAME.elf for each tests/boot/kernel/NAME.c.

BOOT_KERNELS := $(patsubst tests/boot/kernel/%.c,$(BUILD)/boot/%.elf,$(wildcard tests/boot/kernel/*.c))
BOOT_FLAGS   := -m32 -march=i686 -std=gnu11 -Os -ffreestanding -fno-builtin -mgeneral-regs-only -fno-pic -fno-pie \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none $(WARN)

.PHONY: boot-kernels
boot-kernels: $(BOOT_KERNELS)

$(BUILD)/boot/%.elf: tests/boot/kernel/%.c tests/boot/kernel/start.S tests/boot/kernel/linker.ld tests/boot/kernel/small.h
	@mkdir -p $(@D)
	$(CC) $(BOOT_FLAGS) -nostdlib -static -no-pie -Wl,--build-id=none -Wl,--no-warn-rwx-segments -T tests/boot/kernel/linker.ld \
		tests/boot/kernel/start.S $< -o $@
