# SPDX-License-Identifier: Apache-2.0
# Host-built tests under ASan and UBSan: every tests/unit/test_*.c is one program. A comment line `/* SOURCES: a.c b.c */` in it (several
# allowed) names the files of the image it links; adding a test needs no change here. `make unit` builds and runs all of them.

UNIT_DIR   := $(BUILD)/unit
UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
UNIT_FLAGS := -std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer \
	-fno-strict-aliasing -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wundef -Werror -I. -Itests/unit -MMD -MP
unit_sources = $(shell sed -n 's|^/\* SOURCES:\(.*\)\*/.*|\1|p' tests/unit/$(1).c)

.PHONY: unit unit-build
unit-build: $(UNIT_TESTS:%=$(UNIT_DIR)/%)

# The programs' output is cmocka's; all run, then the first failure decides.
unit: unit-build
	@failed=; for t in $(UNIT_TESTS); do \
		echo "unit: $$t"; \
		ASAN_OPTIONS=detect_leaks=0 $(UNIT_DIR)/$$t > $(UNIT_DIR)/$$t.log 2>&1 || failed="$$failed $$t"; \
		cat $(UNIT_DIR)/$$t.log; \
	done; \
	if [ -n "$$failed" ]; then echo "unit: FAILED:$$failed"; exit 1; fi; \
	echo "unit: $(words $(UNIT_TESTS)) programs passed"

$(UNIT_DIR)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(UNIT_FLAGS) -c $< -o $@

define UNIT_PROGRAM
$(UNIT_DIR)/$(1): $(UNIT_DIR)/obj/tests/unit/$(1).o $(patsubst %.c,$(UNIT_DIR)/obj/%.o,$(call unit_sources,$(1))) tests/unit/$(1).c
	@echo UNIT $(1)
	$(Q)$(CC) $(UNIT_FLAGS) $$(filter %.o,$$^) -lcmocka -o $$@
endef
$(foreach t,$(UNIT_TESTS),$(eval $(call UNIT_PROGRAM,$(t))))

-include $(shell find $(UNIT_DIR)/obj -name '*.d' 2>/dev/null)
