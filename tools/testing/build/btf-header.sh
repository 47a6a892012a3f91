#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A kernel whose private structures differ is refused with a sentence.
#
# usage: btf-header.sh BTF    BTF: the lab kernel's vmlinux; needs gcc and pahole

set -u
btf=${1:?usage: btf-header.sh BTF}
cd "$(dirname "$0")/../../.." || exit 1
. tools/testing/selftests/lib/tap.sh
shown=$work/said

# Makes a kernel with the structures in $1: a C file, compiled with BTF.
kernel() {
	printf '%s\n' "$1" > "$work/kernel.c"
	gcc -gdwarf-4 -O0 -c -o "$work/kernel.o" "$work/kernel.c" &&
		pahole --btf_encode_detached="$work/btf" "$work/kernel.o"
}

# Checks that the header is refused, beginning with the sentence $2.
refused() { # refused NAME SENTENCE
	local said status
	said=$(scripts/btf-header "$work/btf" 2>&1 >"$work/out")
	status=$?
	[ $status -ne 0 ] && [ ! -s "$work/out" ] && [ "${said%%$'\n'*}" = "rhist: $2" ] &&
		[ "${said#*Other kernels}" != "$said" ]
	status=$?
	[ $status -eq 0 ] || printf '# said: %s\n' "$said"
	ok $status "$1"
}

# The structures of the lab's kernel, to be altered with sed expressions.
scripts/btf-header "$btf" > "$work/layouts.h"
ok $? "the lab's kernel is accepted"

altered() { # altered SED-EXPRESSION...
	local args=() expr
	for expr; do args+=(-e "$expr"); done
	kernel "typedef _Bool bool; typedef unsigned long long u64; typedef unsigned long size_t; typedef long ssize_t;
		struct list_head { struct list_head *next, *prev; };
		struct llist_node { struct llist_node *next; };
		enum event_trigger_type { ETT_NONE };
		enum trace_iterator_bits { TRACE_ITER_RECORD_CMD_BIT = 16, TRACE_ITER_RECORD_TGID_BIT };
		struct trace_buffer; struct ring_buffer_event; struct event_filter; struct seq_file;
		struct event_command; struct trace_event_file; struct event_trigger_data;
		typedef struct { long counter; } local_t;
		typedef struct { int locked; } raw_spinlock_t;
		struct buffer_data_page { u64 time_stamp; local_t commit; };
		struct buffer_page { unsigned int read; struct buffer_data_page *page; };
		struct ring_buffer_per_cpu { local_t committing; raw_spinlock_t reader_lock; struct buffer_page *reader_page; } j;
		struct kref { int refcount; };
		struct eventfs_inode { struct kref kref; } l;
		struct trace_buffer { struct ring_buffer_per_cpu **buffers; } k;
		struct array_buffer { struct trace_buffer *buffer; };
		struct trace_array { struct list_head list; u64 trace_flags; struct array_buffer array_buffer;
			struct array_buffer snapshot_buffer; struct list_head events;
			struct trace_event_file *trace_marker_file; const char *system_names; struct dentry *dir; };
		enum { EVENT_TRIGGER_FL_PROBE = 1 } p; enum { EVENT_CMD_FL_NEEDS_REC = 2 } q;
		struct trace_array a; enum trace_iterator_bits b;
		$({
			sed -n '/^struct event_trigger_data {/,/^static_assert/p' "$work/layouts.h" |
				grep -v '^static_assert'
			echo "struct event_trigger_data c; struct event_command d;"
			echo "struct ftrace_event_field e; struct dyn_event f; struct dyn_event_operations g;"
			echo "struct trace_event_class { void *probe; };"
			echo "struct synth_event { struct dyn_event devent; int ref; struct synth_field **fields;"
			echo "	unsigned int n_fields; struct trace_event_class class; struct module *mod; } h; struct synth_field i;"
			echo "struct trace_event_call { int flags; }; struct trace_uprobe_filter { int nr; };"
			echo "struct trace_probe_event { unsigned int flags; struct trace_event_call call;"
			echo "	struct list_head files, probes; struct trace_uprobe_filter filter[]; } m;"
			echo "struct trace_eprobe *n; struct event_file_link o;"
		} | sed "${args[@]}")"
}

altered '' && scripts/btf-header "$work/btf" > /dev/null
ok $? "the same structures elsewhere are accepted"

altered 's/^struct event_trigger_data {/&\n\tlong added;/' &&
	scripts/btf-header "$work/btf" | grep -q 'event_trigger_data, list) == 64'
ok $? "a member more is no difference that matters"

altered 's/(\*trigger)(/(*fire)(/'
refused "a member that is not there" \
	"'struct event_command' of this kernel has no member 'trigger'"

altered 's/paused;/paused __attribute__((unused));/' 's/bool  *paused\b/int paused/'
refused "a member of another type" \
	"member 'paused' of 'struct event_trigger_data' is 'int' in this kernel, not 'bool'"

altered 's/ftrace_event_field/trace_field/g'
refused "a structure that is not there" \
	"the BTF in $work/btf does not describe 'struct ftrace_event_field'"

altered '' && sed -i 's/snapshot_buffer/max_buffer/' "$work/kernel.c" && kernel "$(cat "$work/kernel.c")" &&
	scripts/btf-header "$work/btf" | grep -q '^#define TRACE_ARRAY__SNAPSHOT_BUFFER '
ok $? "a member with the name that it had in an older kernel"

altered '' && sed -i 's/struct array_buffer snapshot_buffer;//' "$work/kernel.c" && kernel "$(cat "$work/kernel.c")" &&
	scripts/btf-header "$work/btf" > "$work/out" && ! grep -q SNAPSHOT_BUFFER "$work/out"
ok $? "a kernel without snapshots"

altered 's/^struct trace_eprobe \*n;//' '/^struct trace_eprobe {/,/^};/d' &&
	scripts/btf-header "$work/btf" > "$work/out" && ! grep -q 'probe_arg\|trace_probe' "$work/out"
ok $? "a kernel without event probes"

altered 's/nr_args;/n_args;/'
refused "a member of event probes that is not there" \
	"'struct trace_probe' of this kernel has no member 'nr_args'"

echo "no BTF" > "$work/text"
scripts/btf-header "$work/text" > "$work/out" 2> "$work/err"
[ $? -ne 0 ] && grep -q "^rhist: " "$work/err" && [ ! -s "$work/out" ]
ok $? "a file without BTF"

finish
