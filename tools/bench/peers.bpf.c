// SPDX-License-Identifier: GPL-2.0
// Typical C programs that count like the histograms of scripts/bench: one program for each case,
// one compiled at a time, with per-CPU maps.
#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char _license[] SEC("license") = "GPL";

struct kernfs_node {
	__u64 id;
} __attribute__((preserve_access_index));

struct cgroup {
	struct kernfs_node *kn;
} __attribute__((preserve_access_index));

struct css_set {
	struct cgroup *dfl_cgrp;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid;
	struct css_set *cgroups;
} __attribute__((preserve_access_index));

struct key {
	__u64 key;
	__u64 bucket;
};

struct stats {
	__u64 count;
	__u64 total;
	__u64 min;
	__u64 max;
};

#if defined(KEYS4)
#define NUMBERS 4
#elif defined(KEYS8)
#define NUMBERS 8
#endif
#ifdef NUMBERS
struct numbers {
	__u32 number[NUMBERS];
};
#endif

#ifdef GROUP_ALL
#define GROUP
#endif

#if defined(LOG2) || defined(LINEAR) || defined(LATENCY_LINEAR) || defined(GROUP)
#define KEY struct key
#elif defined(NUMBERS)
#define KEY struct numbers
#else
#define KEY __u64
#endif
#if defined(LATENCY) || defined(STATS)
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

#if defined(LATENCY) || defined(STATS)
static __always_inline int add(const void *key, __u64 value)
{
	struct stats *stats = bpf_map_lookup_elem(&counts, key), first = { 1, value, value, value };

	if (!stats) {
		bpf_map_update_elem(&counts, key, &first, BPF_NOEXIST);
		return 0;
	}
	stats->count++;
	stats->total += value;
#ifdef STATS
	if (value < stats->min)
		stats->min = value;
	if (value > stats->max)
		stats->max = value;
#endif
	return 0;
}
#else
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

#if defined(LINEAR) || defined(LATENCY_LINEAR)
/*
 * Like bpftrace for hist(n, 3): computes the number of the power of two, in six steps, and the
 * three bits after the highest. Eight buckets of the same width for each power of two; smaller
 * numbers have one each.
 */
static __always_inline __u64 linear(__u64 n)
{
	__u64 log2 = 0, rest = n;

	if (n < 8)
		return n;
	for (int shift = 32; shift; shift /= 2) {
		if (rest >> shift) {
			rest >>= shift;
			log2 += shift;
		}
	}
	return ((log2 - 2) << 3) + ((n >> (log2 - 3)) & 7);
}
#endif

#if defined(KPROBE)
SEC("kprobe/rhist_bench_probed")
int BPF_KPROBE(count_kprobe, __u32 number)
{
	__u64 key = number;

	return add(&key, 1);
}
#elif defined(FPROBE)
SEC("kprobe.multi/rhist_bench_probed")
int BPF_KPROBE(count_fprobe, __u32 number)
{
	__u64 key = number;

	return add(&key, 1);
}
#elif defined(COUNT)
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
			key.bucket += shift;
		}
	}
	return add(&key, 1);
}
#elif defined(LINEAR)
SEC("tp_btf/cpu_frequency")
int BPF_PROG(count, unsigned int state, unsigned int cpu_id)
{
	struct key key = { state, linear(cpu_id) };

	return add(&key, 1);
}
#elif defined(STATS)
SEC("tp_btf/cpu_frequency")
int BPF_PROG(count, unsigned int state, unsigned int cpu_id)
{
	__u64 key = state;

	return add(&key, cpu_id);
}
#elif defined(NUMBERS)
SEC("tp_btf/sched_ext_bypass_lb")
int BPF_PROG(count, __u32 node, __u32 nr_cpus, __u32 nr_tasks, __u32 nr_balanced,
	     __u32 before_min, __u32 before_max, __u32 after_min, __u32 after_max)
{
	struct numbers key = { { node, nr_cpus, nr_tasks, nr_balanced,
#if NUMBERS == 8
		before_min, before_max, after_min, after_max
#endif
	} };

	return add(&key, 1);
}
#elif defined(SAMPLE)
SEC("perf_event")
int count(void *ctx)
{
	__u64 key = (__u32)bpf_get_current_pid_tgid();

	return add(&key, 1);
}
#elif defined(STACK) || defined(SAMPLE_STACK)
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 4096);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 31 * sizeof(__u64));
} stacks SEC(".maps");

#ifdef STACK
SEC("tp_btf/cpu_frequency")
#else
SEC("perf_event")
#endif
int count(void *ctx)
{
	__u64 key = bpf_get_stackid(ctx, &stacks, 0);

	return add(&key, 1);
}
#elif defined(LATENCY) || defined(LATENCY_LINEAR) || defined(GROUP)
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} queued SEC(".maps");

static __always_inline int enqueue(struct task_struct *task)
{
	__u32 pid = task->pid;
	__u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&queued, &pid, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakeup, struct task_struct *task)
{
	return enqueue(task);
}

#ifdef GROUP_ALL
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wakeup_new, struct task_struct *task)
{
	return enqueue(task);
}
#endif

#ifdef GROUP
/* The number of the bucket with the sum, as in histograms of ebpf_exporter. */
#define SUM_BUCKET 27

static __always_inline __u64 log2_of(__u64 n)
{
	__u64 log2 = 0;

	for (int shift = 32; shift; shift /= 2) {
		if (n >> shift) {
			n >>= shift;
			log2 += shift;
		}
	}
	return log2 < SUM_BUCKET ? log2 : SUM_BUCKET - 1;
}
#endif

SEC("tp_btf/sched_switch")
int BPF_PROG(switch_to, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	__u32 pid = next->pid;
	__u64 *since = bpf_map_lookup_elem(&queued, &pid), usecs;
#if defined(LATENCY)
	__u64 key = pid;
#elif defined(GROUP)
	struct key key = {};
#else
	struct key key = { .key = pid };
#endif

#ifdef GROUP_ALL
	if (!prev_state)
		enqueue(prev);
#endif
	if (!since)
		return 0;
	usecs = (bpf_ktime_get_ns() - *since) / 1000;
#if defined(LATENCY)
	add(&key, usecs);
#elif defined(GROUP)
	key.key = next->cgroups->dfl_cgrp->kn->id;
	key.bucket = log2_of(usecs);
	add(&key, 1);
	key.bucket = SUM_BUCKET;
	add(&key, usecs);
#else
	key.bucket = linear(usecs);
	add(&key, 1);
#endif
	bpf_map_delete_elem(&queued, &pid);
	return 0;
}
#endif
