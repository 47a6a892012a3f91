/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One request at a time through io_uring, without a library. Include it with _GNU_SOURCE defined.
 */
#ifndef URING_H
#define URING_H

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "tracing.h"

struct uring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
};

/* Returns 0, or a negative errno: user-mode Linux lacks io_uring, and it may be forbidden. */
__maybe static int uring_open(struct uring *ring)
{
	struct io_uring_params params = {};
	char *rings;
	size_t size;

	ring->fd = syscall(SYS_io_uring_setup, 4, &params);
	if (ring->fd < 0)
		return -errno;
	size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	if (size < params.sq_off.array + params.sq_entries * sizeof(unsigned int))
		size = params.sq_off.array + params.sq_entries * sizeof(unsigned int);
	rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
			  ring->fd, IORING_OFF_SQES);
	if (rings == MAP_FAILED || ring->sqes == MAP_FAILED || !(params.features & IORING_FEAT_SINGLE_MMAP))
		return -ENOMEM;
	ring->sq_tail = (unsigned int *)(rings + params.sq_off.tail);
	ring->sq_mask = (unsigned int *)(rings + params.sq_off.ring_mask);
	ring->sq_array = (unsigned int *)(rings + params.sq_off.array);
	ring->cq_head = (unsigned int *)(rings + params.cq_off.head);
	ring->cq_tail = (unsigned int *)(rings + params.cq_off.tail);
	ring->cq_mask = (unsigned int *)(rings + params.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
	return 0;
}

/* The result of a request: the return value of the system call, or a negative errno. */
__maybe static int uring_request(struct uring *ring, struct io_uring_sqe request)
{
	unsigned int tail = *ring->sq_tail, head;
	int result;

	ring->sqes[tail & *ring->sq_mask] = request;
	ring->sq_array[tail & *ring->sq_mask] = tail & *ring->sq_mask;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	while (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		if (errno != EINTR)
			return -errno;
	head = *ring->cq_head;
	if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		return -ETIME;
	result = ring->cqes[head & *ring->cq_mask].res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return result;
}

__maybe static int uring_rw(struct uring *ring, int opcode, int fd, const void *at, unsigned int len, long long offset)
{
	return uring_request(ring, (struct io_uring_sqe){
		.opcode = opcode, .fd = fd, .addr = (uintptr_t)at, .len = len, .off = offset,
	});
}

/* Registers a buffer for requests with fixed buffers. */
__maybe static int uring_register(struct uring *ring, void *at, size_t len)
{
	struct iovec buffer = { at, len };

	syscall(SYS_io_uring_register, ring->fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
	return syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, &buffer, 1) ? -errno : 0;
}

#endif
