// SPDX-License-Identifier: GPL-2.0
/* A library of which a function calls back. It is compiled with a NAME and a SIZE of its frame. */
#include <string.h>

#define KEEP(bytes)	__asm__ volatile("" :: "r" (bytes) : "memory")

static __attribute__((noinline, noclone)) void NAME(void (*function)(void))
{
	char bytes[SIZE];

	memset(bytes, 1, sizeof(bytes));
	KEEP(bytes);
	function();
	KEEP(bytes);
}

void library_call(void (*function)(void))
{
	NAME(function);
	KEEP(function);
}
