# SPDX-License-Identifier: Apache-2.0
# libFuzzer programs under ASan and UBSan: every tests/fuzz/fuzz_*.c is one, with the files it links named in `/* SOURCES: ... */` lines as in
# tests/unit. `make fuzz` runs each for FUZZ_SECONDS; what it finds stays in build/fuzz/NAME.found.

FUZZ_DIR     := $(BUILD)/fuzz
FUZZ_SECONDS ?= 10
FUZZERS      := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS   := -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -fno-strict-aliasing \
	-Wall -Wextra -Wshadow -Werror -I. -Itests/unit
fuzz_sources  = $(shell sed -n 's|^/\* SOURCES:\(.*\)\*/.*|\1|p' tests/fuzz/$(1).c)

.PHONY: fuzz fuzz-build
fuzz-build: $(FUZZERS:%=$(FUZZ_DIR)/%)

fuzz: fuzz-build
	@failed=; for f in $(FUZZERS); do \
		echo "fuzz: $$f"; mkdir -p $(FUZZ_DIR)/$$f.corpus; \
		$(FUZZ_DIR)/$$f -max_total_time=$(FUZZ_SECONDS) -use_value_profile=1 -len_control=0 -max_len=512 -timeout=5 -print_final_stats=1 \
			-artifact_prefix=$(FUZZ_DIR)/$$f.found- $(FUZZ_DIR)/$$f.corpus > $(FUZZ_DIR)/$$f.log 2>&1 \
			|| { tail -40 $(FUZZ_DIR)/$$f.log; failed="$$failed $$f"; }; \
	done; \
	if [ -n "$$failed" ]; then echo "fuzz: FAILED:$$failed"; exit 1; fi; \
	echo "fuzz: $(words $(FUZZERS)) programs found nothing in $(FUZZ_SECONDS) s each"

define FUZZ_PROGRAM
$(FUZZ_DIR)/$(1): tests/fuzz/$(1).c $(call fuzz_sources,$(1))
	@mkdir -p $$(@D)
	@echo FUZZ $(1)
	@clang $(FUZZ_FLAGS) $$^ -o $$@
endef
$(foreach f,$(FUZZERS),$(eval $(call FUZZ_PROGRAM,$(f))))
