// SPDX-License-Identifier: GPL-2.0
/* A library whose functions have frames of so many bytes, which it is compiled with (SIZE). */
#include <string.h>

#define KEPT __attribute__((noipa))

KEPT static void library_inner(void (*function)(void))
{
	char bytes[SIZE];

	memset(bytes, 1, sizeof(bytes));
	__asm__ volatile("" : : "r" (bytes) : "memory");
	function();
	__asm__ volatile("" : : "r" (bytes) : "memory");
}

void library_outer(void (*function)(void))
{
	library_inner(function);
	__asm__ volatile("" : : : "memory");
}
