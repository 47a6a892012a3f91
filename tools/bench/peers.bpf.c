// SPDX-License-Identifier: GPL-2.0
// What somebody would write in C to count as the histograms of scripts/bench do: one program for each case, of
// which one is compiled at a time, with maps that each processor has for itself.
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char _license[] SEC("license") = "GPL";

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

struct key {
	__u64 key;
	__u64 log2;
};

struct stats {
	__u64 count;
	__u64 total;
};

#ifdef LOG2
#define KEY struct key
#else
#define KEY __u64
#endif
#ifdef LATENCY
#define VALUE struct stats
#else
#define VALUE __u64
#endif

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, KEY);
	__type(value, VALUE);
} counts SEC(".maps");

#ifndef LATENCY
static __always_inline int add(const void *key, __u64 value)
{
	__u64 *sum = bpf_map_lookup_elem(&counts, key);

	if (sum)
		*sum += value;
	else
		bpf_map_update_elem(&counts, key, &value, BPF_NOEXIST);
	return 0;
}
#endif

#if defined(COUNT)
SEC("tp_btf/cpu_frequency")
int BPF_PROG(count, unsigned int state, unsigned int cpu_id)
{
	__u64 key = state;

	return add(&key, 1);
}
#elif defined(PID)
SEC("tp_btf/sched_waking")
int BPF_PROG(count, struct task_struct *task)
{
	__u64 key = task->pid;

	return add(&key, 1);
}
#elif defined(SUM)
SEC("tp_btf/kmalloc")
int BPF_PROG(count, unsigned long call_site, const void *ptr, unsigned long bytes_req)
{
	__u64 key = call_site;

	return add(&key, bytes_req);
}
#elif defined(LOG2)
SEC("tp_btf/cpu_frequency")
int BPF_PROG(count, unsigned int state, unsigned int cpu_id)
{
	struct key key = { .key = state };

	for (int shift = 16; shift; shift /= 2) {
		if (cpu_id >> shift) {
			cpu_id >>= shift;
			key.log2 += shift;
		}
	}
	return add(&key, 1);
}
#elif defined(STACK)
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 31 * sizeof(__u64));
} stacks SEC(".maps");

SEC("tp_btf/cpu_frequency")
int BPF_PROG(count, unsigned int state, unsigned int cpu_id)
{
	__u64 key = bpf_get_stackid(ctx, &stacks, 0);

	return add(&key, 1);
}
#elif defined(LATENCY)
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} queued SEC(".maps");

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakeup, struct task_struct *task)
{
	__u32 pid = task->pid;
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&queued, &pid, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switch_to, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 pid = next->pid;
	__u64 *since = bpf_map_lookup_elem(&queued, &pid), key = pid;
	struct stats first = { .count = 1 }, *stats;

	if (!since)
		return 0;
	first.total = (bpf_ktime_get_ns() - *since) / 1000;
	stats = bpf_map_lookup_elem(&counts, &key);
	if (stats) {
		stats->count++;
		stats->total += first.total;
	} else {
		bpf_map_update_elem(&counts, &key, &first, BPF_NOEXIST);
	}
	bpf_map_delete_elem(&queued, &pid);
	return 0;
}
#endif
