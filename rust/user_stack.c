// SPDX-License-Identifier: GPL-2.0
/*
 * Registers, mappings and memory of the running program, for a hit that walks its stack.
 *
 * A hit takes no lock, so a mapping may be changed or removed while it is looked at. The result is
 * thrown away then, but the pointers on the way to it have to be good until then:
 *
 * - The mm belongs to the running task, which cannot leave it before the hit ends.
 * - A VMA that was found in the mm's tree is removed from it after the hit began, so it is freed
 *   after preemption is on again (7.2: or becomes another VMA).
 * - A VMA has a reference to its file until it was removed. A file that is freed becomes another
 *   file at most, until preemption is on. On 6.12 that does not hold for backing files, of
 *   overlayfs: they are freed at once, so files are read without faults there.
 * - A file has had an inode that was in use after the hit began. All file systems of the kernel
 *   free an inode after a grace period, but others need not, so inodes are read without faults.
 *
 * Pages that a VMA maps do not matter here: they are read as copy_from_user_nofault() does.
 *
 * mtree_load() has a tracepoint, and the other functions that are called here may be traced, too. A
 * hit of theirs would walk the stack again, and so on. So one stack at a time is walked in each
 * context: between rhist_user_begin() and rhist_user_end(), another one does not begin.
 */
#include <linux/bitops.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "memory.h"
#include "user_stack.h"

#if defined(CONFIG_UML)
#define fp_of(regs)		PT_REGS_BP(regs)
#define lr_of(regs)		PT_REGS_DI(regs)
#define is_foreign(regs)	false
#define CODE			U64_MAX
/* Where arch/x86/um/vdso/vma.c maps it. */
#define vdso_of(mm)		(TASK_SIZE - PAGE_SIZE)
#elif defined(CONFIG_X86_64)
#include <asm/cpu_entry_area.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/processor.h>
#define fp_of(regs)		((regs)->bp)
#define lr_of(regs)		((regs)->di)
#define is_foreign(regs)	(!user_64bit_mode(regs) || test_thread_flag(TIF_ADDR32))
#define CODE			U64_MAX
#define vdso_of(mm)		((unsigned long)READ_ONCE((mm)->context.vdso))
#elif defined(CONFIG_ARM64)
#define fp_of(regs)		((regs)->regs[29])
#define lr_of(regs)		((regs)->regs[30])
#define is_foreign(regs)	compat_user_mode(regs)
/* The bits that ptrauth_user_pac_mask() leaves, without the tag in the highest byte. */
#define CODE			(TASK_SIZE_64 - 1)
#define vdso_of(mm)		((unsigned long)READ_ONCE((mm)->context.vdso))
#endif

#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)

static __always_inline bool in_entry_area(unsigned long address)
{
	return address - CPU_ENTRY_AREA_BASE < CPU_ENTRY_AREA_MAP_SIZE;
}

/*
 * Return whether the kernel has stored the registers of the program. It stores them before it
 * enables interrupts, and its code for that cannot be probed. Only an NMI may come before: on its
 * own stack, which is in the entry area. (If it interrupts the program itself, it has the task's.)
 * The processor has put the interrupted stack pointer into the second word from its end; with FRED,
 * into the fourth (struct fred_frame).
 *
 * Perf checks that, too (perf_get_regs_user()), but only for interrupts of the system call's entry
 * behind the change of stacks. Before that, the stack is the program's or one of the entry area,
 * and the registers of the entry before are stored.
 */
static __always_inline bool are_stored(const struct pt_regs *regs)
{
	unsigned long here = current_stack_pointer, end, before;
	bool fred = cpu_feature_enabled(X86_FEATURE_FRED);

	if (likely(!in_entry_area(here)))
		return true;
	/* The stack of FRED_NMI_STACK_LEVEL. */
	end = fred ? __rdmsr(MSR_IA32_FRED_RSP2) : this_cpu_read(cpu_tss_rw.x86_tss.ist[IST_INDEX_NMI]);
	if (end - here > EXCEPTION_STKSZ)
		return false;
	before = ((const unsigned long *)end)[fred ? -4 : -2];
	if (before < TASK_SIZE_MAX || in_entry_area(before))
		return false;
	return before <= (unsigned long)&regs->bp || before > (unsigned long)(regs + 1);
}

#else

/* Interrupts are off until then, and NMIs do not come, or are masked. */
#define are_stored(regs)	true

#endif

/*
 * Whether memory in user space may be of another program: on x86-64, nmi_uaccess_okay() tells,
 * which is neither exported nor declared for modules. It is while the kernel changes to another mm,
 * or has a temporary one, with interrupts off. (In execve() also with interrupts on, where it is
 * the old program's, as the registers are.)
 */
#if defined(CONFIG_X86_64) && !defined(CONFIG_UML)
#define may_be_of_other()	(irqs_disabled() || in_nmi())
#else
#define may_be_of_other()	false
#endif

/*
 * A number for the address space of a task: no other one has had it. An mm may be at the address of
 * an older one, but not in a process that began at the same time and has called execve() as often.
 * The number of calls is in bits that are the same in all addresses of an mm: the highest 16, and
 * the lowest. (A task of vfork() has another number for the same address space.)
 */
static __always_inline u64 space_of(const struct task_struct *task)
{
	return (unsigned long)task->mm ^ ror64(READ_ONCE(task->self_exec_id), 16) ^
	       READ_ONCE(task->group_leader->start_time) * GOLDEN_RATIO_64;
}

/*
 * A number that is the same for two walks of an address space only if no mapping in it has changed
 * in between; odd if that cannot be said, as somebody is changing one. The lower half is the
 * sequence count of mmap_lock, which is odd while that is locked for writing. It would be the same
 * again after 2^31 changes, which take a minute at least: so it counts for 16 seconds at most,
 * which the upper half counts.
 */
static __always_inline u64 mappings_of(struct mm_struct *mm)
{
#ifdef CONFIG_PER_VMA_LOCK
	unsigned int seq;

	if (likely(mmap_lock_speculate_try_begin(mm, &seq)))
		return seq | (u64)(jiffies >> ilog2(16 * HZ)) << 32;
#endif
	return 1;
}

/* A bit for each context in which a stack is being walked. */
static DEFINE_PER_CPU(unsigned char, walking);

/*
 * Begin a walk. For RHIST_USER_RUNS, fill @program with the registers of the running program when
 * it entered the kernel or was interrupted; rhist_user_end() has to follow in this hit. Otherwise,
 * no stack can be walked. Any context, NMI included, with preemption off.
 */
notrace enum rhist_user_state rhist_user_begin(struct rhist_user *program)
{
	struct task_struct *task = current;
	struct pt_regs *regs = task_pt_regs(task);
	unsigned char context, contexts;
	u64 word;

	if (!task->mm || task->flags & (PF_KTHREAD | PF_USER_WORKER))
		return RHIST_USER_NONE;
	if (!are_stored(regs))
		return RHIST_USER_ENTERING;
	/* Before its first program, a task has other registers there. */
	if (!user_mode(regs))
		return RHIST_USER_NONE;
	if (is_foreign(regs))
		return RHIST_USER_FOREIGN;
	context = interrupt_context_level();
	contexts = __this_cpu_read(walking);
	if (contexts & 1 << context)
		return RHIST_USER_NESTED;
	/* A hit that interrupts this restores it. */
	__this_cpu_write(walking, contexts | 1 << context);
	barrier();
	/* One by one: an initializer would zero all of it first. */
	program->ip = instruction_pointer(regs);
	program->sp = user_stack_pointer(regs);
	program->fp = fp_of(regs);
	program->lr = lr_of(regs);
	program->code = CODE;
	program->space = space_of(task);
	program->mappings = mappings_of(task->mm);
	program->process = task->tgid;
	program->context = context;
	pagefault_disable();
	program->reads = !may_be_of_other() || rhist_read_user(&word, program->sp, sizeof(word));
	return RHIST_USER_RUNS;
}

/* End a walk that has begun. In the same hit. */
notrace void rhist_user_end(const struct rhist_user *program)
{
	pagefault_enable();
	barrier();
	__this_cpu_write(walking, __this_cpu_read(walking) & ~(1 << program->context));
}

/*
 * Read a word of the program's memory, without faulting it in; false if it is not there. While it
 * is walked.
 *
 * Like copy_from_user_nofault(), whose checks rhist_user_begin() has made, but for the address.
 */
notrace bool rhist_user_read(const struct rhist_user *program, u64 address, u64 *word)
{
	const u64 __user *at = (const u64 __user *)address;
	u64 value;

	if (unlikely(!program->reads))
		return rhist_read_user(word, address, sizeof(*word));
	if (can_do_masked_user_access())
		at = masked_user_access_begin(at);
	else if (!user_read_access_begin(at, sizeof(*at)))
		return false;
	unsafe_get_user(value, at, fault);
	user_read_access_end();
	*word = value;
	return true;
fault:
	user_read_access_end();
	return false;
}

/*
 * A word of the program's memory; 0 if it is not there. While a program is walked whose memory can
 * be read (@reads), which rhist_user_read() finds out for each word.
 */
notrace u64 rhist_user_load(u64 address)
{
	const u64 __user *at = (const u64 __user *)address;
	u64 value;

	if (can_do_masked_user_access())
		at = masked_user_access_begin(at);
	else if (!user_read_access_begin(at, sizeof(*at)))
		return 0;
	unsafe_get_user(value, at, fault);
	user_read_access_end();
	return value;
fault:
	user_read_access_end();
	return 0;
}

/*
 * Two words, likewise: at @first and so many bytes above, less than a page. Both are 0 if one of
 * them is not there.
 */
notrace struct rhist_user_words rhist_user_load_two(u64 first, u64 between)
{
	const u64 __user *at = (const u64 __user *)first;
	struct rhist_user_words words;

	/* Nothing is mapped behind the address that is taken for too large ones. */
	if (can_do_masked_user_access())
		at = masked_user_access_begin(at);
	else if (!user_read_access_begin(at, between + sizeof(*at)))
		return (struct rhist_user_words){};
	unsafe_get_user(words.first, at, fault);
	unsafe_get_user(words.second, (const u64 __user *)((unsigned long)at + between), fault);
	user_read_access_end();
	return words;
fault:
	user_read_access_end();
	return (struct rhist_user_words){};
}

/*
 * Get the inode of a file that is or was mapped, and whether a file stays there; false if it cannot
 * be read.
 */
static __always_inline bool look_at_file(const struct file *file, const struct inode **inode, bool *stays)
{
	fmode_t mode;

	if (RHIST_FILES_STAY) {
		*inode = READ_ONCE(file->f_inode);
		*stays = true;
		return *inode;
	}
	if (!rhist_read_kernel(inode, &file->f_inode, sizeof(*inode)) ||
	    !rhist_read_kernel(&mode, &file->f_mode, sizeof(mode)))
		return false;
	*stays = !(mode & FMODE_BACKING);
	return *inode;
}

/* Set the identity of the file of a mapping, and return the mapping's kind. */
static __always_inline enum rhist_user_kind identify(struct rhist_user_mapping *to)
{
	/* The fields are close to one another, so they are copied with those in between. */
	char copy[offsetofend(struct inode, i_generation)] __aligned(__alignof__(struct inode));
	const struct inode *inode, *from = (const struct inode *)copy;
	dev_t device;

	static_assert(sizeof(copy) <= 256 && offsetof(struct inode, i_sb) < sizeof(copy) &&
		      offsetof(struct inode, i_ino) < sizeof(copy) &&
		      offsetof(struct inode, i_size) < sizeof(copy) &&
		      offsetof(struct inode, i_mtime_nsec) < sizeof(copy));
	if (!look_at_file(to->file, &inode, &to->stays) ||
	    !rhist_read_kernel(copy, inode, sizeof(copy)) ||
	    !rhist_read_kernel(&device, &from->i_sb->s_dev, sizeof(device)))
		return RHIST_USER_CHANGING;
	if (!S_ISREG(from->i_mode))
		return RHIST_USER_MEMORY;
	to->inode = (unsigned long)inode;
	to->identity = (struct rhist_user_file){
		.inode = from->i_ino,
		.size = from->i_size,
		.changed_ns = from->i_mtime_sec * NSEC_PER_SEC + from->i_mtime_nsec,
		.device = device,
		.generation = from->i_generation,
	};
	return RHIST_USER_FILE;
}

/*
 * Return whether the file with this inode has this size, and this time of the last change of its
 * data. For an @inode that rhist_user_mapping() has found in a mapping of this address space, if
 * that was not changed before the hit began: then the inode was in use, and is memory until the hit
 * ends, with most file systems. Another change of its identity is not noticed. Any context.
 */
notrace bool rhist_user_same_file(u64 inode, u64 size, u64 changed_ns)
{
#ifdef CONFIG_PER_VMA_LOCK
	const struct inode *at = (const struct inode *)inode;
	time64_t sec;
	loff_t now;
	u32 nsec;

	__get_kernel_nofault(&now, &at->i_size, loff_t, fault);
	__get_kernel_nofault(&sec, &at->i_mtime_sec, time64_t, fault);
	__get_kernel_nofault(&nsec, &at->i_mtime_nsec, u32, fault);
	return now == size && sec * NSEC_PER_SEC + nsec == changed_ns;
fault:
#endif
	/* Without that lock, no walk knows a mapping of another one. */
	return false;
}

/* Look at the mapping of an address. The result may be a mix of several mappings. */
static noinline notrace enum rhist_user_kind look(struct mm_struct *mm, unsigned long address,
						  struct rhist_user_mapping *to)
{
	struct vm_area_struct *vma = vma_lookup(mm, address);
	bool anonymous;

	if (!vma || !(READ_ONCE(vma->vm_flags) & VM_EXEC))
		return RHIST_USER_ASTRAY;
	*to = (struct rhist_user_mapping){
		.begin = READ_ONCE(vma->vm_start),
		.end = READ_ONCE(vma->vm_end),
		.offset = (u64)READ_ONCE(vma->vm_pgoff) << PAGE_SHIFT,
		.file = READ_ONCE(vma->vm_file),
	};
	if (address < to->begin || address >= to->end)
		return RHIST_USER_CHANGING;
	anonymous = !READ_ONCE(vma->vm_ops);
	if (to->file && !anonymous)
		return identify(to);
	if (!to->file && !anonymous && to->begin - to->offset == vdso_of(mm))
		return RHIST_USER_VDSO;
	return RHIST_USER_MEMORY;
}

static __always_inline bool are_same(const struct rhist_user_mapping *one, const struct rhist_user_mapping *other)
{
	return one->begin == other->begin && one->end == other->end && one->offset == other->offset &&
	       one->file == other->file && one->identity.inode == other->identity.inode &&
	       one->identity.size == other->identity.size &&
	       one->identity.changed_ns == other->identity.changed_ns &&
	       one->identity.device == other->identity.device &&
	       one->identity.generation == other->identity.generation;
}

/*
 * Find the executable mapping of an address of the running program. While that is walked.
 *
 * If nobody has locked the mappings for writing meanwhile, the result is right. A VMA that is being
 * changed may be seen between two states, also twice the same, if its writer was interrupted or
 * preempted there: so nothing is found while somebody has the lock, unless that is the task itself,
 * in a call. The tree may be between two states then, but can be searched, since page faults search
 * it without that lock; and no VMA is in the middle of a change, unless a kprobe is.
 *
 * mtree_load() begins anew when a node on its way was replaced meanwhile. That takes a writer a
 * thousand instructions, and the hit some ten for a node: so it does not begin often. A writer that
 * the hit has interrupted has put the new node in its place before it marks the old one.
 */
#ifdef CONFIG_PER_VMA_LOCK
notrace enum rhist_user_kind rhist_user_mapping(u64 address, struct rhist_user_mapping *to)
{
	struct mm_struct *mm = current->mm;

	for (int tries = 0; tries < 2; tries++) {
		enum rhist_user_kind kind;
		unsigned int seq;

		if (unlikely(!mmap_lock_speculate_try_begin(mm, &seq)))
			return rhist_holds_mappings(mm) ? look(mm, address, to) : RHIST_USER_CHANGING;
		kind = look(mm, address, to);
		if (likely(!mmap_lock_speculate_retry(mm, seq)))
			return kind;
	}
	return RHIST_USER_CHANGING;
}
#else
/*
 * User-mode Linux lacks that sequence count: there, a mapping has to be the same twice. A state
 * between two others is taken as right if its writer was interrupted in it.
 */
notrace enum rhist_user_kind rhist_user_mapping(u64 address, struct rhist_user_mapping *to)
{
	struct mm_struct *mm = current->mm;
	struct rhist_user_mapping again;
	enum rhist_user_kind kind;

	if (!RHIST_VMAS_STAY)
		return RHIST_USER_CHANGING;
	kind = look(mm, address, to);
	smp_rmb();
	if (look(mm, address, &again) != kind)
		return RHIST_USER_CHANGING;
	if (kind == RHIST_USER_ASTRAY)
		return kind;
	/* Where not all files stay, one that was not in use when it was looked at may be gone. */
	to->stays &= RHIST_FILES_STAY;
	return are_same(to, &again) ? kind : RHIST_USER_CHANGING;
}
#endif

/*
 * Take a reference to the file of a RHIST_USER_FILE, for fput() in task context; NULL if that is
 * not possible now. Sets @fits if it is the file of the mapping, which may be another one by now:
 * the caller has the reference nevertheless. In the hit that has found the mapping, while its
 * program is walked.
 *
 * Never of a file that is open for writing, as it could not be executed until the reference is put
 * (ETXTBSY). On 6.12, never of a backing file: see above. The mapping was right, so the file was in
 * use when its mode said that.
 */
notrace struct file *rhist_user_hold(const struct rhist_user_mapping *mapping, bool *fits)
{
	struct file *file = mapping->file;
	struct rhist_user_mapping now;

	if (!mapping->stays || READ_ONCE(file->f_mode) & FMODE_WRITE || !rhist_file_try_get(file))
		return NULL;
	*fits = rhist_user_mapping(mapping->begin, &now) == RHIST_USER_FILE && are_same(mapping, &now);
	return file;
}

/*
 * Return a file that keeps no more of a held one than its path (O_PATH), with a reference for the
 * caller; NULL if that is not possible now, or the file is to be kept: such a one already, or a
 * backing file of overlayfs, which also has the path that users see.
 *
 * The held file is the program's own: while it has a reference, its locks (flock) and leases stay,
 * and its close is not reported. The other one does nothing when it is opened or closed, asks no
 * permission, and does not count as a reader of the inode. rhist_open_mapped() needs the path, the
 * inode and FMODE_BACKING in the mode, which are the same.
 *
 * Task context, may sleep. The caller has a reference to the file, and keeps it.
 */
struct file *rhist_user_file_settle(struct file *file)
{
	struct file *path;

	if (file->f_mode & (FMODE_BACKING | FMODE_PATH))
		return NULL;
	path = dentry_open(&file->f_path, O_PATH, current_cred());
	return IS_ERR(path) ? NULL : path;
}

/* Take another reference to a file. Any context; the caller has one. */
void rhist_user_file_get(struct file *file)
{
	get_file(file);
}
