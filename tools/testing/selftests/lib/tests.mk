# SPDX-License-Identifier: GPL-2.0
# For the makefiles of the suites: builds the C tests of their folder, and HELPERS of lib, into OUT;
# `run` calls it in the guest.
TOP := ../../../..
OUT ?= $(TOP)/build/selftests/$(notdir $(CURDIR))
CFLAGS ?= -O1 -g -Wall -Wextra -Werror
LIB := ../lib
UAPI := $(TOP)/include/uapi
TESTS := $(basename $(wildcard *.c))
# The kernel's kselftest.h, and its own tests.
KSELFTEST := $(or $(RHIST_KSELFTEST),$(shell $(TOP)/scripts/lab path source)/tools/testing/selftests)

all: $(addprefix $(OUT)/,$(HELPERS) $(TESTS))

# Shell tests run them hundreds of times.
vpath %.c $(LIB)
$(addprefix $(OUT)/,$(HELPERS)): LDFLAGS += -static

$(addprefix $(OUT)/,$(HELPERS) $(TESTS)): $(OUT)/%: %.c $(wildcard *.h $(LIB)/*.h) ../../events/values.h
	@mkdir -p $(OUT)
	$(CC) $(CFLAGS) -I$(LIB) -I$(UAPI) -iquote $(KSELFTEST) $(LDFLAGS) -pthread -o $@ $<

# A program of 32 bits, which needs neither a library nor headers of its own; on x86-64 alone: empty
# elsewhere.
CALLER32 := $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine)),$(OUT)/caller32)

$(OUT)/caller32: $(LIB)/caller32.c
	@mkdir -p $(OUT)
	$(CC) -O1 -Wall -Wextra -Werror -m32 -ffreestanding -nostdlib -static -fno-pie -no-pie -fno-stack-protector \
		-fcf-protection=none -o $@ $<

# sqlhist is built from the source in its manual page: empty elsewhere.
MANUAL := $(firstword $(wildcard $(addsuffix /usr/share/man/man3/tracefs_sql.3.gz,$(RHIST_CLIENTS) /.)))
SQLHIST := $(if $(MANUAL),$(OUT)/sqlhist)

$(OUT)/sqlhist: $(MANUAL) $(LIB)/sqlhist.sed
	@mkdir -p $(OUT)
	zcat $< | sed -n -f $(LIB)/sqlhist.sed >$@.c
	$(CC) -o $@ $@.c $$(pkg-config --cflags --libs libtracefs)

# The example program of the guide, which has a user event.
$(OUT)/request: $(TOP)/tools/user_events/request.c
	@mkdir -p $(OUT)
	$(CC) $(CFLAGS) -I$(UAPI) -static -o $@ $<

clean:
	$(RM) -r $(OUT)

.PHONY: all clean
