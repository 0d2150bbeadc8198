# SPDX-License-Identifier: Apache-2.0
# `make client`: Debian's kernel and the initramfs images of tests/client, in $(BUILD)/client.

CLIENT     := $(BUILD)/client
CLIENT_SRC := $(wildcard tests/client/*.py tests/client/guest/*)

.PHONY: client
client: $(CLIENT)/made

$(CLIENT)/stamp: tests/client/guest/stamp.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 $(WARN) -ffreestanding -fno-stack-protector -fcf-protection=none -fno-pie -no-pie -static \
		-nostdlib -Wl,--build-id=none -Wl,-z,noseparate-code -s $< -o $@

$(CLIENT)/l2.elf: tests/client/l2/entry.S tests/client/l2/kernel.c tests/client/l2/linker.ld
	@mkdir -p $(@D)
	$(CC) -m32 -std=gnu11 -O2 $(WARN) -ffreestanding -fno-stack-protector -fcf-protection=none -fno-pie -no-pie \
		-mgeneral-regs-only -fno-asynchronous-unwind-tables -static -nostdlib -Wl,--build-id=none -Wl,--no-warn-rwx-segments \
		-T tests/client/l2/linker.ld tests/client/l2/entry.S tests/client/l2/kernel.c -o $@

$(CLIENT)/made: $(CLIENT_SRC) $(CLIENT)/stamp $(CLIENT)/l2.elf
	$(PY) tests/client/images.py $(CLIENT)
	@touch $@
