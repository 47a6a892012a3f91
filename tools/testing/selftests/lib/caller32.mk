# SPDX-License-Identifier: GPL-2.0
# A program of 32 bits, which needs neither a library nor headers of its own; on x86-64 alone. For
# the makefile of a suite, whose OUT and LIB it reads: $(CALLER32) is empty elsewhere.
CALLER32 := $(if $(filter x86_64-%,$(shell $(CC) -dumpmachine)),$(OUT)/caller32)

$(OUT)/caller32: $(LIB)/caller32.c
	@mkdir -p $(OUT)
	$(CC) -O1 -Wall -Wextra -Werror -m32 -ffreestanding -nostdlib -static -fno-pie -no-pie -fno-stack-protector \
		-fcf-protection=none -o $@ $<
