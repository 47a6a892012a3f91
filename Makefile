# SPDX-License-Identifier: GPL-2.0
#
# For people; what the kernel's build reads is Kbuild. "make help" says what there is.

lab := scripts/lab
# Empty where nobody has said which.
named := $(KERNEL)
KERNEL ?= stock
# The newest of Debian 13 itself, by a name that stays.
ifeq ($(KERNEL),debian13)
override KERNEL := $(shell $(lab) own)
endif
rust = $(shell scripts/sources | tr '\0' '\n' | grep '\.rs$$' | grep -v '^tools/rhist/')

# Of which headers of events, if not of all. User-mode Linux is for tests and benchmarks, which fire these.
ifneq ($(filter um umdebug,$(KERNEL)),)
RHIST_EVENT_HEADERS ?= irq kmem oom power sched signal task timer watchdog
endif
# And from where those are that only the source of the kernel has.
headers = $(foreach name,RHIST_EVENT_HEADERS RHIST_KERNEL_SOURCE,$(if $($(name)),$(name)='$($(name))'))

# What is built, in a folder of its own.
module = $(CURDIR)

.PHONY: all events stale_int3 orc samples command bench-events bench bench-host demo shell update test test-changed matrix test-kernels test-fast test-long test-host test-debug test-part test-kcsan test-packages test-otlp test-fleet deb dist fuzz fmt clippy clean help

ifdef KDIR

out := $(CURDIR)/build/kdir
kbuild = $(lint) scripts/kbuild $(KDIR) $(module) $@ $(foreach name,RHIST_BTF RHIST_MODULES RHIST_CRATES RUSTC HOSTRUSTC,$(if $($(name)),$(name)='$($(name))')) $(headers)
ready = @test -e $(KDIR)/Module.symvers || { \
	echo "rhist: $(KDIR) has no Module.symvers: no modules can be built for it" >&2; exit 1; }

else

out := $(CURDIR)/build/$(KERNEL)
# The lab's tools, whatever this machine has; and no job server of a make outside of it.
kbuild = unset MAKEFLAGS MFLAGS MAKELEVEL; kdir=$$($(lab) path kdir $(KERNEL)) && \
	$(lab) chroot $(KERNEL) -- $(lint) scripts/kbuild $$kdir $(module) $@ -j$$(nproc) $(if $(V),V=$(V)) $$($(lab) path tools $(KERNEL)) \
	RHIST_BTF=$$($(lab) path btf $(KERNEL)) RHIST_CRATES=$$($(lab) path crates) $(headers) $(chosen)
ready = @$(lab) $(KERNEL)
# Compiled once for all checkouts.
crates = @$(lab) objects $(KERNEL) $@

endif

all: $(out)

events: $(out)/events

stale_int3: $(out)/stale_int3

orc: $(out)/orc

samples: $(out)/samples

bench-events: $(out)/bench

.PHONY: $(out) $(out)/events $(out)/stale_int3 $(out)/orc $(out)/samples $(out)/bench $(CURDIR)/build/clippy

$(out)/events: module = $(CURDIR)/tools/testing/events
$(out)/stale_int3: module = $(CURDIR)/tools/testing/lab/stale_int3
$(out)/orc: module = $(CURDIR)/tools/testing/lab/orc
$(out)/bench: module = $(CURDIR)/tools/bench
# Modules of the kernel's source that its own tests load, and distributions leave out. (Not ftrace-direct: its tests go
# through all tracers many times, which takes too long where the processor is emulated, and are about these alone.)
$(out)/samples: module = $(shell $(lab) path source $(KERNEL))/samples
$(out)/samples: chosen = $(addsuffix =m,$(addprefix CONFIG_SAMPLE_,TRACE_EVENTS TRACE_PRINTK))

$(out) $(out)/events $(out)/stale_int3 $(out)/orc $(out)/samples $(out)/bench:
	$(ready)
	@mkdir -p $@
	$(if $(filter $(out),$@),$(crates))
	+@$(kbuild) modules

# What was compiled before would not be looked at again. Only the module's own Rust is; what clippy compiles is not used,
# so nothing is optimised.
$(CURDIR)/build/clippy: lint = scripts/lint module
$(CURDIR)/build/clippy:
	$(ready)
	@mkdir -p $@
	$(crates)
	@rm -f $@/src/rhist.o
	@{ $(kbuild) CLIPPY=1 RHIST_RUSTFLAGS='-Copt-level=0 -Cdebuginfo=0' RHIST_EVENT_HEADERS=sched src/rhist.o; } >$@/log 2>&1 || { \
		grep -A12 -E '^(warning|error)|^make.*\*\*\*' $@/log | head -n 60; \
		echo "All of it: $@/log"; exit 1; } >&2
	@grep '^lint: ' $@/log || :

clippy: $(CURDIR)/build/clippy

fmt:
	@$(lab) root
	@$(lab) rust
	@$(lab) chroot -- rustfmt $(rust)
	@cd tools/rhist && ../../$(lab) chroot -- "$$(../../$(lab) path rust)/bin/cargo" fmt --all

command:
	@scripts/test command --kernel $(KERNEL)

demo:
	@scripts/demo $(if $(named),$(KERNEL))

shell: all
	@scripts/vm --kernel $(KERNEL) --shell

bench:
	@scripts/bench --kernel $(KERNEL) $(BENCH)

bench-host:
	@scripts/test bench

# What a mode of scripts/test does not take, it refuses.
given = $(if $(named),--kernel $(KERNEL)) $(if $(SEED),--seed $(SEED))

test:
	@scripts/test $(given)

update:
	@scripts/update

test-changed:
	@scripts/test changed $(given)

matrix:
	@scripts/test matrix $(given) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(TABLE),--table '$(TABLE)') $(if $(PART),--part $(PART))

test-kernels:
	@scripts/test kernels $(given) $(KERNELS)

test-fast:
	@scripts/test fast $(given)

test-long:
	@scripts/test long $(given)

test-host:
	@scripts/test host $(given)

test-debug:
	@scripts/test debug $(given)

test-part:
	@scripts/test part $(given)

test-kcsan:
	@scripts/test kcsan $(given)

# Made in the lab, of what is built for its kernel; with KERNELS, for each of them.
ifdef KERNELS
deb:
	@set -e; for kernel in $(if $(filter all,$(KERNELS)),$$(grep '^[0-9]' scripts/kernels),$(KERNELS)); do \
		$(MAKE) --no-print-directory KERNEL=$$kernel KERNELS= deb; done
else ifdef named
deb: all
	@scripts/package/deb $(KERNEL)
else
deb:
	@kernel=$$($(lab) debian13) && $(MAKE) --no-print-directory KERNEL=$$kernel deb
endif

# With the Rust that the module carries, which is no file of the checkout.
dist:
	@$(lab) stock
	@scripts/package/dist

test-packages:
	@KERNEL=$(KERNEL) tools/testing/packages/run $(PACKAGES)

test-otlp: all events command
	@tools/testing/otlp/run $(KERNEL)

test-fleet: all command
	@tools/testing/fleet/run $(KERNEL)

fuzz:
	@scripts/test fuzz

# Only what was built here: the lab stays.
clean:
	rm -rf build tools/testing/host/target

help:
	@echo 'make               build/stock/rhist.ko, for the newest Debian kernel that rhist is known to work on'
	@echo 'make KERNEL=RELEASE  build/RELEASE/rhist.ko, for another kernel of Debian: see scripts/lab kernels'
	@echo 'make KERNEL=debian13  build/RELEASE/rhist.ko, for the newest kernel of Debian 13 itself'
	@echo 'make KERNEL=debug  build/debug/rhist.ko, for the debug kernel of the lab; or KERNEL=kcsan, um, umdebug,'
	@echo '                   nixos, kcfi, ubuntu, arch, debug-6.12, debug-orc: see scripts/lab help'
	@echo 'make KDIR=FOLDER   build/kdir/rhist.ko, for that kernel, with the tools of this machine'
	@echo 'make events        build/stock/events/rhist_events.ko, the events that tests fire; KERNEL=, KDIR= too'
	@echo 'make orc           build/stock/orc, modules of the test hist.orc, for kernels with the ORC unwinder; KERNEL= too'
	@echo 'make samples       build/stock/samples, modules of the kernel that its own ftracetest loads; KERNEL= too'
	@echo 'make command       build/command/rhist, the command; KERNEL=RELEASE of arm64, build/command/aarch64/rhist'
	@echo 'make deb           build/packages/*.deb, for Debian 13'\''s own kernel, or KERNEL=stock, the newest of backports;'
	@echo '                   KERNELS=all for all kernels of scripts/kernels, or those that KERNELS= names'
	@echo 'make dist          build/packages/rhist-VERSION.tar.xz: the sources, and the Rust that the module carries'
	@echo 'make demo          a histogram, made in a guest with Debian 13'\''s own kernel, or KERNEL=stock, the newest'
	@echo 'make shell         a shell in such a guest, with the module loaded; KERNEL= too'
	@echo 'make bench         measures events in C and in rhist, on user-mode Linux and in QEMU: about 12 minutes,'
	@echo '                   and 10 to make the kernels for it; BENCH=um, icount, smp or write runs one part;'
	@echo '                   BENCH=peers or machine compares with bpftrace, BPF programs and perf, which are fetched;'
	@echo '                   KERNEL=debian13 or RELEASE, what runs on stock'
	@echo 'make bench-host    measures map, program and filter on this machine, on one and two threads'
	@echo 'make test          all tests that need no debug kernel: 20 minutes on two processors, once the lab is there'
	@echo 'make test SEED=N   the same in a random order, from the seed N; each job sees only the output of jobs that it needs'
	@echo 'make test KERNEL=RELEASE  the guest tests, all of them on that kernel'
	@echo 'make test-changed  those of them whose files have changed since they passed on this machine'
	@echo 'make matrix        all tests on all kernels, in jobs of at most 20 minutes, and a table: what has passed is run again'
	@echo '                   only if what it depends on has changed; MINUTES=90 ends in time, the riskiest jobs first;'
	@echo '                   PART=1/2 is for one of two machines; TABLE=FILE is carried from one to the other'
	@echo 'make test-kernels  a few tests on each kernel that rhist is known to work on, or on KERNELS=RELEASE,'
	@echo '                   and a table of the results: 5 minutes each, and 3 to fetch and prepare one'
	@echo 'make update        looks for a newer Debian kernel, tries it, and says what it found'
	@echo 'make test-fast     format, lints, the pure parts, some guest tests: 1 minute'
	@echo 'make test-long     all, the long ones too, and fuzzing'
	@echo 'make test-host     rustfmt, clippy and the tests that need no guest'
	@echo 'make test-debug    the guest tests on kernels that look for memory errors, leaks, wrong locking; ended,'
	@echo '                   it goes on where it was'
	@echo 'make test-part     a twenty-fourth of them, on user-mode Linux that does: another part after each commit; 1 to 5 minutes'
	@echo 'make test-kcsan    hits, readers and changes at once, in guests that report data races; likewise'
	@echo 'make test-packages the packages, on machines of their own: installed, upgraded, removed; 15 minutes;'
	@echo '                   PACKAGES=TEST runs one part'
	@echo 'make test-otlp     what rhist pushes, decoded with the definitions of OpenTelemetry from PyPI; KERNEL=um too'
	@echo 'make test-fleet    20 machines, which were recorded, scraped by a Prometheus: 1 minute, and 8 to record them'
	@echo 'scripts/test       one suite, one test, one job: see --help'
	@echo 'make fuzz          fuzzes triggers, filters and unwind information for FUZZ_TIME seconds each, by default 60'
	@echo 'make fmt           formats the Rust code'
	@echo 'make clippy        runs clippy with the lints of the kernel'
	@echo 'make clean         removes what was built here, nothing of the lab'
	@echo
	@echo 'Missing packages and pieces of the lab are installed and made first. scripts/lab, scripts/vm: see --help.'
