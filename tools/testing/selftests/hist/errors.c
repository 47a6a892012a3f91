// SPDX-License-Identifier: GPL-2.0
/*
 * Bad input: errno, the error_log, and that nothing else has changed. The kernel's own
 * implementation gets the same input in the same boot and is the measure.
 */
#define _GNU_SOURCE
#include "errorlog.h"

enum verdict {
	/* same as C: errno, and the entries of error_log, except ours beside them (errorlog.h) */
	SAME,
	OPERATOR,	/* as SAME; accepted by a C that allows an operator without operands */
	TAKEN,	/* Accepted; the log entry is C's. */
	OURS,	/* C refuses it, and we accept it */
	/*
	 * EINVAL and an entry of our own; C is not asked, since its shift by 64 makes UBSAN report
	 */
	SILENT,
};

/* A synthetic event with fields named like rhist's extensions. */
#define BEYOND "synthetic/beyond"
#define BEYOND_FIELDS "beyond u64 min; u64 max; u64 avg; u64 dist; u64 on; u64 unit; u64 limit; u64 quantiles; u64 buckets; u64 expire; u64 full; u64 taken; u64 other"

static const struct text {
	enum verdict verdict;
	const char *event;	/* syscalls/sys_enter_getpgid if NULL */
	const char *text;
	size_t len;
} texts[] = {
#define T(verdict, text) { verdict, NULL, text, sizeof(text) - 1 }
#define ON(event, verdict, text) { verdict, event, text, sizeof(text) - 1 }
	/* no command */
	T(SAME, " "), T(SAME, "\n"), T(SAME, "\t \n"), T(SAME, "\0"), T(SAME, "\0hist:keys=pid"), T(SAME, "!"),
	T(SAME, ":"), T(SAME, "hist"), T(SAME, "hist:"), T(SAME, "hist: "), T(SAME, "!hist"), T(SAME, "!hist:"),
	T(SAME, "hista:keys=pid"), T(SAME, "his:keys=pid"), T(SAME, "HIST:keys=pid"), T(SAME, "nosuch"),
	T(SAME, "nosuch:keys=pid"), T(SAME, "!nosuch"), T(SAME, "! hist:keys=pid"), T(SAME, "keys=pid"),
	T(SAME, "!!hist:keys=pid"), T(SAME, "\xff\xfe"), T(SAME, "hist\xff:keys=pid"), T(SAME, "hist;keys=pid"),
	/* tokens */
	T(SAME, "hist:x"), T(SAME, "hist:keys"), T(SAME, "hist:pid"), T(SAME, "hist:keys=pid:"),
	T(SAME, "hist::keys=pid"), T(SAME, "hist:keys=pid::size=128"), T(SAME, "hist:keys=pid:nosuch"),
	T(TAKEN, "hist:keys=pid: size=128"), T(SAME, "hist:keys=pid :size=128"), T(SAME, "hist:size=128"),
	T(SAME, "hist:vals=hitcount"), T(SAME, "hist:keys="), T(SAME, "hist:keys=pid:vals="), T(SAME, "hist:key="),
	T(SAME, "hist:keys=pid:size="), T(SAME, "hist:keys=pid:name="), T(SAME, "hist:keys=pid:sort="),
	T(SAME, "hist:keys=pid:x="), T(SAME, "hist:="), T(SAME, "hist:keys=pid:="), T(SAME, "hist:keys=pid:Nohitcount"),
	T(SAME, "hist:keys=pid:paused"), T(SAME, "hist:keys=pid:onmatch"), T(SAME, "hist:keys=pid:\xff\xff"),
	T(SAME, "hist:Keys=pid"), T(SAME, "!hist:"), T(SAME, "!hist:x"), T(SAME, "!hist:keys=nosuch"),
	T(SAME, "!hist:keys=pid:size=1"), T(TAKEN, "hist:keys=pid\0:size=1"),
	/* keys */
	T(SAME, "hist:keys=nosuch"), T(SAME, "hist:keys=nosuch:size=128"), T(SAME, "hist:size=128:keys=nosuch"),
	T(SAME, "hist:keys=Pid"), T(SAME, "hist:keys=pid "  "x"), T(SAME, "hist:keys= pid"), T(SAME, "hist:keys=,"),
	T(SAME, "hist:keys=pid,nosuch"), T(SAME, "hist:keys=nosuch,pid"),
	T(SAME, "hist:keys=pid,nosuch,pid,pid"),
	T(SAME, "hist:keys=\xc3\xa4"), T(SAME, "hist:keys=pid\xff"), T(SAME, "hist:keys=common"),
	T(SAME, "hist:keys=common_nosuch"), T(SAME, "hist:keys=common_CPU"), T(SAME, "hist:keys=cOMM"),
	T(SAME, "hist:keys=pid:keys=nosuch"), T(SAME, "hist:keys=keys"), T(SAME, "hist:keys=common_comm,common_comm"),
	T(SAME, "hist  keys=nosuch"), T(SAME, "  hist:keys=nosuch  "), T(SAME, "hist:  keys=nosuch"),
	T(SAME, "\nhist:keys=nosuch\n"), T(SAME, "hist:keys=nosuch\0garbage"), T(SAME, "hist:keys=x.y.nosuch"),
	T(SAME, "hist:keys=\"pid\""), T(SAME, "hist:keys=pid;common_pid"), T(SAME, "hist:keys=nosuch:vals=hitcount"),
	T(SAME, "hist:keys=keynosuch"), T(SAME, "hist:keys=nosuch\nx"), T(SAME, "hist:keys=%s%n%p"),
	ON("task/task_rename", SAME, "hist:keys=nosuch"), ON("task/task_rename", SAME, "hist:keys=filename"),
	ON("sched/sched_process_exec", SAME, "hist:keys=filenam"),
	ON("raw_syscalls/sys_enter", SAME, "hist:keys=args"), ON("raw_syscalls/sys_enter", SAME, "hist:keys=id,args"),
	/* modifiers */
	T(SAME, "hist:keys=pid."), T(SAME, "hist:keys=pid.nosuch"), T(SAME, "hist:keys=pid.HEX"),
	T(SAME, "hist:keys=pid.hexx"), T(SAME, "hist:keys=nosuch.hex"), T(SAME, "hist:keys=nosuch.nosuch"),
	T(SAME, "hist:keys=pid.percent"), T(SAME, "hist:keys=pid.graph"), T(SAME, "hist:keys=pid.buckets"),
	T(SAME, "hist:keys=pid.buckets="), T(SAME, "hist:keys=pid.buckets=0"), T(SAME, "hist:keys=pid.buckets=x"),
	T(SAME, "hist:keys=pid.bucketsy=1"), T(SAME, "hist:keys=pid.execname"), T(SAME, "hist:keys=.hex"),
	T(SAME, "hist:keys=pid.hex.hex"), T(SAME, "hist:keys=pid.stacktrace"), T(SAME, "hist:keys=."),
	T(SAME, "hist:keys=pid.sym-offse"), T(SAME, "hist:keys=pid..hex"), T(SAME, "hist:keys=common_comm.nosuch"),
	T(TAKEN, "hist:keys=pid.hex"), T(TAKEN, "hist:keys=pid.sym"), T(TAKEN, "hist:keys=pid.sym-offset"),
	T(TAKEN, "hist:keys=pid.syscall"), T(TAKEN, "hist:keys=pid.log2"), T(TAKEN, "hist:keys=pid.buckets=10"),
	T(TAKEN, "hist:keys=pid.bucket=10"), T(TAKEN, "hist:keys=pid.usecs"), T(TAKEN, "hist:keys=common_pid.execname"),
	T(TAKEN, "hist:keys=common_timestamp"), T(TAKEN, "hist:keys=common_stacktrace"), T(TAKEN, "hist:keys=stacktrace"),
	T(TAKEN, "hist:keys=hitcount"),
	/* size */
	T(SILENT, "hist:keys=pid:size=0"), T(SAME, "hist:keys=pid:size=1"), T(SAME, "hist:keys=pid:size=64"),
	T(SAME, "hist:keys=pid:size=131073"), T(SAME, "hist:keys=pid:size=262144"), T(SAME, "hist:keys=pid:size=-1"),
	T(SAME, "hist:keys=pid:size=x"), T(SAME, "hist:keys=pid:size=128x"), T(SAME, "hist:keys=pid:size=0x"),
	T(SAME, "hist:keys=pid:size=128 "  "x"), T(SAME, "hist:keys=pid:size=1 28"), T(SAME, "hist:keys=pid:size=0200000000"),
	T(SAME, "hist:keys=pid:size=99999999999999999999999"), T(SILENT, "hist:keys=pid:size=18446744073709551615"),
	T(SAME, "hist:keys=pid:size=18446744073709551616"), T(SAME, "hist:keys=pid:size=0xffffffffffffffffff"),
	T(SAME, "hist:keys=nosuch:size=1"), T(SAME, "hist:size=1:keys=nosuch"), T(SAME, "hist:keys=pid:size=12.8"),
	T(SAME, "hist:keys=pid:size=128,256"), T(SAME, "hist:keys=pid:size=089"),
	T(SAME, "hist:keys=pid:size=9223372036854775808"), T(SILENT, "hist:keys=pid:size=9223372036854775809"),
	/* sort */
	T(SAME, "hist:keys=pid:sort=nosuch"), T(SAME, "hist:keys=pid:sort=common_pid"), T(SAME, "hist:keys=pid:sort=,"),
	T(SAME, "hist:keys=pid:sort=pid,"), T(SAME, "hist:keys=pid:sort=,pid"), T(SAME, "hist:keys=pid:sort=pid.up"),
	T(SAME, "hist:keys=pid:sort=pid."), T(SAME, "hist:keys=pid:sort=pid.hex"), T(SAME, "hist:keys=pid:sort=hitcount.x"),
	T(SAME, "hist:keys=pid:sort=pid,pid,pid"), T(SAME, "hist:keys=pid:sort=pid,nosuch"),
	T(SAME, "hist:keys=pid:sort=pid.ascending.x"), T(SAME, "hist:keys=pid:sort=.descending"),
	T(SAME, "hist:keys=nosuch:sort=nosuch"), T(SAME, "hist:sort=nosuch:keys=pid"), T(SAME, "hist:keys=pid:sort= pid"),
	T(SAME, "hist:keys=pid:sort=pid.Descending"), T(SAME, "hist:keys=pid:sort=hitcount,nosuch.descending"),
	T(TAKEN, "hist:keys=pid:sort=hitcount,pid"), T(TAKEN, "hist:keys=pid:sort=pid.descending,hitcount.descending"),
	/* what C has not */
	T(OURS, "hist:keys=pid,pid,pid,pid"), T(OURS, "hist:keys=pid,common_pid,common_type,common_cpu"),
	T(OURS, "hist:keys=pid,pid,pid,pid,pid,pid,pid,pid"), T(OURS, "hist:keys=pid:vals=pid,pid,pid"),
	T(OURS, "hist:keys=pid:vals=pid,pid,pid,pid,pid,pid,pid,pid"), T(OURS, "hist:keys=pid:vals=hitcount,pid,pid,pid"),
	T(OURS, "hist:keys=pid:vals=pid.min"), T(OURS, "hist:keys=pid:vals=pid.max,pid.avg"),
	T(OURS, "hist:keys=pid:vals=pid.dist"), T(OURS, "hist:keys=pid:vals=pid.dist=0"), T(OURS, "hist:keys=pid:vals=pid.dist=5"),
	T(OURS, "hist:keys=pid:vals=(pid)"), T(OURS, "hist:keys=pid:vals=(pid+1)"), T(OURS, "hist:keys=pid:vals=(pid-common_pid).dist"),
	T(OURS, "hist:keys=pid:vals=(common_timestamp.usecs).max"), T(OURS, "hist:keys=pid:vals=(pid*2).hex"),
	T(OURS, "hist:keys=pid.log2=3"), T(OURS, "hist:keys=pid.log2=0,common_pid.log2=5"),
	T(OURS, "hist:keys=pid:limit(10)"), T(OURS, "hist:limit(1):keys=pid"), T(OURS, "hist:keys=pid:vals=pid.dist:quantiles(50,99.99)"),
	T(OURS, "hist:keys=pid:vals=pid.dist:unit(s)"), T(OURS, "hist:keys=pid:vals=pid.dist:unit(ms)"),
	T(OURS, "hist:keys=pid:vals=pid.dist:unit(us)"), T(OURS, "hist:keys=pid:vals=pid.dist:buckets(4)"),
	T(OURS, "hist:keys=pid:vals=pid.max:sort=pid.max"), T(OURS, "hist:keys=pid:vals=pid.max:sort=pid.max.descending"),
	T(OURS, "hist:keys=pid:vals=pid.dist:sort=pid.p99.9.descending"), T(OURS, "hist:keys=pid:vals=(pid+1).dist:sort=(pid+1).avg"),
	T(OURS, "hist:keys=pid:vals=pid.dist:sort=pid.min,pid.p50"),
	T(OURS, "hist:keys=pid:size=65..129"), T(OURS, "hist:size=0x80..1048576:keys=pid"), T(OURS, "hist:keys=pid:expire(1s)"),
	T(OURS, "hist:keys=pid:expire(8760h)"), T(OURS, "hist:keys=pid:x=pid:expire(taken)"), T(OURS, "hist:keys=pid:x=pid:expire(90m,taken)"),
	T(OURS, "hist:keys=pid:full(other)"), T(OURS, "hist:keys=pid:full(recycle)"), T(OURS, "hist:keys=pid:full(recycle,other)"),
	T(OURS, "hist:keys=pid:size=128..256:expire(1500ms):full(other)"),
	T(SAME, "hist:keys=pid.dist"), T(SAME, "hist:keys=pid.min"), T(SAME, "hist:keys=pid:x=pid.dist"), T(SAME, "hist:keys=pid:vals=pid.log2=3"),
	T(SAME, "hist:keys=pid:vals=pid.dist=6"), T(SAME, "hist:keys=pid:vals=pid.dist="), T(SAME, "hist:keys=pid:vals=pid.dist=x"),
	T(SAME, "hist:keys=pid.log2="), T(SAME, "hist:keys=pid.log2=6"), T(SAME, "hist:keys=pid:vals=pid.minimum"),
	T(SAME, "hist:keys=pid:vals=pid.min+1"), T(SAME, "hist:keys=pid:sort=pid.max"), T(SAME, "hist:keys=pid:limit()"),
	T(SAME, "hist:keys=pid:limit(0)"), T(SAME, "hist:keys=pid:limit"), T(SAME, "hist:keys=pid:unit(s)"),
	T(SAME, "hist:keys=pid:quantiles(50)"), T(SAME, "hist:keys=pid:buckets(8)"), T(SAME, "hist:keys=pid:on(common_pid)"),
	T(SAME, "hist:keys=pid:on(pid"), T(SAME, "hist:keys=pid:vals=()"), T(SAME, "hist:keys=(pid)"),
	T(SAME, "hist:keys=pid:x=(pid)"),
	T(SAME, "hist:keys=pid:size=128.."), T(SAME, "hist:keys=pid:size=..128"), T(SAME, "hist:keys=pid:size=64..128"),
	T(SAME, "hist:keys=pid:size=128..128"), T(SAME, "hist:keys=pid:size=128..1048577"), T(SAME, "hist:keys=pid:size=128...256"),
	T(SAME, "hist:keys=pid:size=128..18446744073709551616"), T(SAME, "hist:keys=pid:size=18446744073709551616..256"),
	T(SAME, "hist:keys=pid:expire()"), T(SAME, "hist:keys=pid:expire"), T(SAME, "hist:keys=pid:expire(0s)"),
	T(SAME, "hist:keys=pid:expire(999ms)"), T(SAME, "hist:keys=pid:expire(8761h)"), T(SAME, "hist:keys=pid:expire(60)"),
	T(SAME, "hist:keys=pid:expire(60us)"), T(SAME, "hist:keys=pid:expire(18446744073709551617s)"), T(SAME, "hist:keys=pid:expire(taken)"),
	T(SAME, "hist:keys=pid:expire(60s"), T(SAME, "hist:keys=pid:full()"), T(SAME, "hist:keys=pid:full(drop)"),
	T(SAME, "hist:keys=pid:full(other,other)"), T(SAME, "hist:keys=pid:full"),
	T(SAME, "hist:keys=nosuch.ips"), T(SAME, "hist:keys=pid.strings"), T(SAME, "hist:keys=pid if pid.ip == 1.2.3.4"),
	/* The same with fields of these names. */
	ON(BEYOND, OURS, "hist:keys=min:vals=min.min,max.max,dist.dist,avg.avg"), ON(BEYOND, OURS, "hist:keys=limit:limit(5)"),
	ON(BEYOND, OURS, "hist:keys=on:vals=dist.dist:unit(s):quantiles(5):buckets(2)"), ON(BEYOND, OURS, "hist:keys=unit.log2=2"),
	ON(BEYOND, OURS, "hist:keys=dist:vals=(quantiles-buckets).max"), ON(BEYOND, SAME, "hist:keys=min:on(on)"),
	ON(BEYOND, TAKEN, "hist:keys=on,unit,limit:vals=min,max:sort=min"), ON(BEYOND, TAKEN, "hist:keys=on:quantiles=quantiles:limit=limit,unit=unit"),
	ON(BEYOND, OURS, "hist:keys=expire:taken=taken:expire(taken):full(other)"),
	ON(BEYOND, TAKEN, "hist:keys=expire,full,other:vals=taken:sort=full"), ON(BEYOND, TAKEN, "hist:keys=other:expire=expire,full=full:taken=taken"),
	ON(BEYOND, TAKEN, "hist:keys=dist:min=min.hex,max=max:sort=dist.descending"),
	/* values */
	T(SAME, "hist:keys=pid:vals=nosuch"), T(SAME, "hist:keys=pid:vals=pid,nosuch"), T(SAME, "hist:keys=pid:vals=pid.sym"),
	T(SAME, "hist:keys=pid:vals=pid.log2"), T(SAME, "hist:keys=pid:vals=pid.nosuch"),
	T(SAME, "hist:keys=nosuch:vals=nosuch"), T(SAME, "hist:keys=pid:vals=,"), T(SAME, "hist:keys=pid:vals=$x"),
	T(SAME, "hist:keys=pid:vals=pid.buckets=3"), T(SAME, "hist:keys=pid:vals=pid.execname"),
	T(SAME, "hist:keys=pid:nohitcount"), T(SAME, "hist:keys=pid:NOHC"), T(SAME, "hist:keys=pid:vals=hitcount:nohitcount"),
	T(TAKEN, "hist:keys=pid:vals=pid"), T(TAKEN, "hist:keys=pid:vals=hitcount,common_pid"),
	T(TAKEN, "hist:keys=pid:vals=hitcount.hex"), T(TAKEN, "hist:keys=pid:vals=common_pid.percent"),
	T(TAKEN, "hist:keys=pid:vals=common_pid:nohitcount"), T(TAKEN, "hist:keys=pid:vals=hitcount,hitcount"),
	/* several keys */
	T(TAKEN, "hist:keys=pid,common_pid"), T(TAKEN, "hist:keys=pid,common_comm,common_cpu"), T(TAKEN, "hist:keys=pid,pid"),
	/* expressions, variables, references */
	T(SAME, "hist:keys=pid+nosuch"), T(SAME, "hist:keys=nosuch-pid"), T(SAME, "hist:keys=pid+"), T(SAME, "hist:keys=-pid"),
	T(SAME, "hist:keys=pid+1+2+3+4"), T(SAME, "hist:keys=pid/0"), T(SAME, "hist:keys=0x"), T(SAME, "hist:keys=1z"),
	T(SAME, "hist:keys=common_comm+1"), T(SAME, "hist:keys=$x"), T(SAME, "hist:keys=$"), T(SAME, "hist:keys=a.b.$x"),
	T(SAME, "hist:keys=pid:x=nosuch"), T(SAME, "hist:keys=pid:x=1,y"), T(SAME, "hist:keys=pid:x=1,x=2"),
	T(SAME, "hist:keys=pid:x=pid+nosuch"), T(SAME, "hist:keys=pid:x=$y"), T(SAME, "hist:keys=pid:x=pid.nosuch"),
	T(SAME, "hist:keys=nosuch:x=1"), T(SAME, "hist:keys=pid:x=common_timestamp.usecs-1"),
	T(TAKEN, "hist:keys=pid+1"), T(TAKEN, "hist:keys=1"), T(TAKEN, "hist:keys=-(pid)"), T(TAKEN, "hist:keys=pid:x=pid"),
	T(TAKEN, "hist:keys=pid:x=1"), T(TAKEN, "hist:keys=pid:x=pid,y=$x"), T(TAKEN, "hist:keys=pid:sizes=128"),
	T(TAKEN, "hist:keys=pid:ts0=common_timestamp.usecs"),
	/* flags, names, clocks */
	T(SAME, "hist:keys=pid:cont"), T(SAME, "hist:keys=pid:continue"), T(SAME, "hist:keys=pid:clear"),
	T(SAME, "hist:keys=nosuch:pause"), T(SAME, "hist:keys=nosuch:name=x"), T(SAME, "hist:keys=nosuch:clock=x"),
	T(SAME, "hist:keys=pid:clock=nosuch:x=common_timestamp"),

	/* actions */
	T(SAME, "hist:keys=pid:onmatch("), T(SAME, "hist:keys=pid:onmatch(x"), T(SAME, "hist:keys=pid:onmatch(x).trace(y,z)"),
	T(SAME, "hist:keys=pid:onmatch(x.y).trace(y,pid)"), T(SAME, "hist:keys=pid:onmax(x"), T(SAME, "hist:keys=pid:onmax(x).save(pid)"),
	T(SAME, "hist:keys=pid:onmax($x).save(pid)"), T(SAME, "hist:keys=pid:onmatch(sched.sched_switch)"),
	T(SAME, "hist:keys=pid:onmatch(sched.sched_switch).save(pid)"), T(SAME, "hist:keys=pid:onmax($x).save()"),
	T(SAME, "hist:keys=pid:onmatch(sched.sched_switch).trace(rhist_nosuch,pid)"),
	T(SAME, "hist:keys=pid:onmax($x).snapshot("), T(SAME, "hist:keys=nosuch:onmatch(sched.sched_switch).trace(x_y,pid)"),
	T(TAKEN, "hist:keys=common_pid:x=pid:onmax($x).save(pid)"), T(TAKEN, "hist:keys=common_pid:x=pid:onchange($x).save(pid)"),
	/* filters */
	T(SAME, "hist:keys=pid if"), T(SAME, "hist:keys=pid if "), T(SAME, "hist:keys=pid ifx"), T(SAME, "hist:keys=pid if x"),
	T(SAME, "hist: if pid == 1"), T(SAME, "hist:if pid == 1"), T(SAME, "hist if pid == 1"), T(SAME, "hist:keys=nosuch if pid == 1"),
	T(SAME, "hist:keys=pid\tif"), T(SAME, "hist:keys=pid if  "),
	T(SAME, "hist:keys=pid if nosuch == 1"), T(SAME, "hist:keys=pid if pid"), T(SAME, "hist:keys=pid if pid =="),
	T(SAME, "hist:keys=pid if pid = 1"), T(SAME, "hist:keys=pid if (pid == 1"), T(SAME, "hist:keys=pid if pid == 1)"),
	T(SAME, "hist:keys=pid if pid == x"), T(SAME, "hist:keys=pid if comm == 'x"),
	T(OPERATOR, "hist:keys=pid if pid == 1 &&"),
	T(TAKEN, "hist:keys=pid if pid == 1"), T(TAKEN, "hist:keys=pid\tif\tpid == 1"), T(TAKEN, "hist:keys=pid  if  comm == \"x\""),
	/* other commands */
	T(SAME, "traceonn"), T(SAME, "snapshots"),
	T(TAKEN, "traceoff if pid == 123456"), T(TAKEN, "snapshot:1 if pid == 123456"), T(TAKEN, "stacktrace:1 if pid == 123456"),
	T(TAKEN, "enable_event:sched:sched_waking if pid == 123456"),
	T(SAME, "traceon:x"), T(SAME, "enable_event"), T(SAME, "enable_event:x:y"), T(SAME, "disable_hist:sched"),
	ON("ftrace/print", SAME, "hist:keys=buf"), ON("ftrace/print", SAME, "hist:keys=ip:vals=buf"),
	/* the one that exists */
	T(SAME, "hist:keys=common_comm:size=256"), T(SAME, "hist:keys=common_comm"), T(SAME, "hist keys=common_comm"),
	T(SAME, "hist:keys=common_comm:vals=hitcount:sort=hitcount"), T(SAME, "hist:keys=common_comm:size=256 "),
};

static const char *const default_event = "syscalls/sys_enter_getpgid";

/* The trigger that stays during all tests. */
static const char *standing(void)
{
	return c_has_comm() ? "hist:keys=common_comm:size=256" : "hist:keys=common_pid:size=256";
}

/* The first bytes of a text, fit for one line. */
static const char *shown(const char *text, size_t len)
{
	static char line[120];
	size_t used = 0;

	for (size_t i = 0; i < len && used < 90; i++) {
		unsigned char c = text[i];

		if (c < ' ' || c > '~' || c == '#')
			used += snprintf(line + used, sizeof(line) - used, "\\x%02x", c);
		else
			line[used++] = c;
	}
	snprintf(line + used, sizeof(line) - used, len > 90 ? "... (%zu bytes)" : "", len);
	return line;
}

static const char *trigger(const char *dir, const char *event)
{
	return pathf("%s/events/%s/trigger", dir, event);
}

/* Returns everything about an event that a refused command must leave unchanged. */
static char *state(const char *event)
{
	char *line = slurp(trigger(tracing_dir(), event)), *hist, *both = NULL;

	/* C's histograms are removed and put back. */
	hist = testing_c() ? strdup("") : slurp(pathf("%s/events/%s/hist", tracing_dir(), event));
	if (!line || !hist || asprintf(&both, "%s%s", line, hist) < 0)
		both = strdup("(unreadable)");
	free(line);
	free(hist);
	return both;
}

/* Removes the triggers that a text has created, with the same text. */
static void undo(const char *dir, const char *event, const char *text, size_t len)
{
	char command[8192] = "!";
	size_t skip = strspn(text, " \t\n");

	memcpy(command + 1, text + skip, len - skip);
	put_len(trigger(dir, event), O_APPEND, command, len - skip + 1);
}

/*
 * Gives C the command, and leaves only the standing trigger there. `lines` are the triggers after a
 * success.
 */
static int ask_c(const char *event, const char *text, size_t len, char **log, char **lines)
{
	int error;

	truncate_file(pathf("%s/error_log", kernel_dir()));
	error = put_len(trigger(kernel_dir(), event), O_APPEND, text, len);
	*log = slurp(pathf("%s/error_log", kernel_dir()));
	*lines = NULL;
	if (!error) {
		*lines = slurp(trigger(kernel_dir(), event));
		undo(kernel_dir(), event, text, len);
		truncate_file(trigger(kernel_dir(), event));
		if (!strcmp(event, default_event))
			append(trigger(kernel_dir(), event), standing());
	}
	return error;
}

/* Returns true if a command names common_comm, which this kernel's C lacks. */
static bool names_newer(const char *text, size_t len)
{
	char *copy = strndup(text, len);
	bool newer = !copy || (!c_has_comm() && names_comm(copy));

	free(copy);
	return newer;
}

static void check(enum verdict verdict, const char *event, const char *text, size_t len)
{
	char *before, *after, *c_lines, *lines = NULL, *c_log = NULL, *log;
	bool good = false;
	int c_error, error;

	if (!event)
		event = default_event;
	if (verdict == SILENT && testing_c()) {
		skip("C has a bug here", "%s", shown(text, len));
		return;
	}
	if (verdict != SILENT && names_newer(text, len)) {
		skip("this kernel's C has no common_comm", "%s", shown(text, len));
		return;
	}
	before = state(event);
	c_lines = NULL;
	c_error = verdict == SILENT ? -EINVAL : ask_c(event, text, len, &c_log, &c_lines);
	if (testing_c()) {
		error = c_error;
		log = c_log ? strdup(c_log) : NULL;
		lines = c_lines ? strdup(c_lines) : NULL;
	} else {
		truncate_file(pathf("%s/error_log", tracing_dir()));
		error = put_len(trigger(tracing_dir(), event), O_APPEND, text, len);
		log = slurp(pathf("%s/error_log", tracing_dir()));
		if (!error) {
			lines = slurp(trigger(tracing_dir(), event));
			if (c_lines)
				without_differences(c_lines);
			undo(tracing_dir(), event, text, len);
		}
	}
	after = state(event);
	switch (verdict) {
	case OPERATOR:
		if (!c_wants_operands() && !testing_c()) {
			good = !c_error && error == -EINVAL && log && *log;
			break;
		}
		/* fall through */
	case SAME:
		good = c_error < 0 && c_error == error && (testing_c() || same_log(c_log, log, error));
		break;
	case SILENT:
		good = error == -EINVAL && same_log("", log, error);
		break;
	case OURS:
		good = c_error == -EINVAL && (testing_c() || (!error && log && !*log && lines));
		break;
	case TAKEN:
		good = !c_error && !error && log && !*log && c_lines && lines && !strcmp(c_lines, lines);
		break;
	}
	if (!ok(good, "%s", shown(text, len))) {
		note("C: %s\n%s", errno_name(c_error), c_log ?: "");
		note("ours: %s\n%s", errno_name(error), log ?: "");
		if (c_lines && lines && strcmp(c_lines, lines))
			note("C:\n%sours:\n%s", c_lines, lines);
	}
	if (strcmp(before, after)) {
		ok(false, "%s changes nothing", shown(text, len));
		note("before:\n%safter:\n%s", before, after);
	}
	free(before);
	free(after);
	free(c_lines);
	free(lines);
	free(c_log);
	free(log);
}

/* Texts about as long as a page, the limit. */
static void lengths(void)
{
	static const size_t sizes[] = { 255, 256, 257, 300, 1000, 4094, 4095, 4096, 4097, 5000, 65536 };
	const size_t page = sysconf(_SC_PAGESIZE);
	char *text = malloc(1 << 17);

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		memset(text, 'a', sizes[i]);
		memcpy(text, "hist:keys=", 10);
		text[sizes[i]] = 0;
		check(SAME, NULL, text, sizes[i]);
		memset(text, ' ', sizes[i]);
		memcpy(text + sizes[i] - 15, "hist:keys=nosuc", 15);
		check(SAME, NULL, text, sizes[i]);
	}
	/* Valid texts of one byte less than a page; C and rhist accept both. */
	memset(text, ' ', page);
	memcpy(text, "hist:keys=pid", 13);
	ok(!put_len(trigger(tracing_dir(), default_event), O_APPEND, text, page - 1), "%zu bytes are taken", page - 1);
	ok(put_len(trigger(tracing_dir(), default_event), O_APPEND, text, page) == -EINVAL, "%zu bytes are not", page);
	ok(!append(trigger(tracing_dir(), default_event), "!hist:keys=pid"), "and it goes again");
	free(text);
}

/*
 * Returns true if this is the latest entry. The command ends with `marked`, in which a ^ marks the
 * caret.
 */
static bool is_last(const char *location, const char *text, const char *marked)
{
	struct log_entry e;
	char entry[1024] = "";
	bool good;

	read_log(tracing_dir(), &e);
	if (e.command && e.caret >= 0 && e.caret <= (int)strlen(e.command))
		snprintf(entry, sizeof(entry), "%.*s^%s", e.caret, e.command, e.command + e.caret);
	good = !strcmp(e.location, location) && !strcmp(e.text, text) && *entry && strlen(entry) <= strlen(marked) &&
	       !strcmp(entry, marked + strlen(marked) - strlen(entry));
	if (!good)
		note("\"%s: %s\", \"%s\"", e.location, e.text, entry);
	free_log(&e);
	return good;
}

/* Returns true if this is the latest entry, without a command. C has none. */
static bool told(const char *text)
{
	return testing_c() || is_last("rhist:syscalls:sys_enter_getpgid", text, "^");
}

/* Unmapped memory, and zero bytes. */
static void odd_writes(void)
{
	const char *volatile bad = (const char *)8;
	int fd = open(trigger(tracing_dir(), default_event), O_WRONLY | O_APPEND);

	ok(write(fd, "", 0) == 0, "no bytes: nothing is done");
	ok(write(fd, bad, 20) < 0 && errno == EFAULT && told("Memory of the command cannot be read"), "a bad address: EFAULT");
	ok(write(fd, bad, 5000) < 0 && errno == EINVAL && told("Command too long, it has to be shorter than a page"),
	   "too much at a bad address: EINVAL");
	ok(write(fd, "hist:keys=nosuch", 16) < 0 && errno == EINVAL, "a mistake through an open file: EINVAL");
	ok(write(fd, "hist:keys=pid", 13) == 13, "and then none");
	ok(write(fd, "!hist:keys=pid", 14) == 14, "and its removal, through the same open file");
	close(fd);
	fd = open(trigger(tracing_dir(), default_event), O_RDONLY);
	ok(write(fd, "hist:keys=pid", 13) < 0 && errno == EBADF, "not through one that is open for reading");
	close(fd);
}

/*
 * Gives the command of a row to both sides. The errno is the row's. Where C logs something, its
 * sentence is the row's with its caret, and ours is the same (errorlog.h), or it begins the row's,
 * which ours then is. Earlier entries stay in the log and are not mistaken for ours. Where this
 * kernel's C lacks common_comm, ours alone is enough.
 */
static void check_row(const char *event, const char *error_name, const char *marked, const char *sentence)
{
	/* Behind the r, it is C's location. */
	const char *own = pathf("rhist:%.*s:%s", (int)strcspn(event, "/"), event, strchr(event, '/') + 1);
	const char *caret = strchr(marked, '^');
	char text[4096], *c_log, *log;
	struct log_entry c;
	int error, c_error;
	bool good;

	snprintf(text, sizeof(text), "%.*s%s", (int)(caret - marked), marked, caret + 1);
	/* At least one byte: an empty write does nothing. */
	if (!*text)
		strcpy(text, " ");
	truncate_file(pathf("%s/error_log", kernel_dir()));
	c_error = append(trigger(kernel_dir(), event), text);
	c_log = slurp(pathf("%s/error_log", kernel_dir()));
	read_log(kernel_dir(), &c);
	good = !strcmp(errno_name(c_error), error_name);
	if (testing_c()) {
		ok(good, "%s", marked);
		free(c_log);
		free_log(&c);
		return;
	}
	if (!strcmp(c.text, sentence))
		truncate_file(pathf("%s/error_log", tracing_dir()));
	error = append(trigger(tracing_dir(), event), text);
	log = slurp(pathf("%s/error_log", tracing_dir()));
	good &= error == c_error;
	if (!strcmp(c.text, sentence))
		good &= c.caret == caret - marked && same_log(c_log, log, error);
	else if (*c.text)
		good &= !strncmp(sentence, c.text, strlen(c.text)) && is_last(c.location, sentence, marked);
	else
		good &= is_last(own, sentence, marked);
	if (!good && names_newer(text, strlen(text)))
		good = !strcmp(errno_name(error), error_name) && (is_last(own, sentence, marked) || is_last(own + 1, sentence, marked));
	if (!ok(good, "%s: %s", marked, sentence)) {
		note("C: %s\n%s", errno_name(c_error), c_log ?: "");
		note("ours: %s\n%s", errno_name(error), log ?: "");
	}
	free(c_log);
	free(log);
	free_log(&c);
}

/* Checks the rows of errors.tsv; its head describes them. */
static void table(void)
{
	const char *folder = getenv("FOLDER"), *synthetic = pathf("%s/synthetic_events", kernel_dir());
	char *text = slurp(pathf("%s/errors.tsv", folder ?: "tools/testing/selftests/hist")), *rest = text, *line;

	if (!text || append(synthetic, "rhist_errors pid_t pid; int prio; u64 lat; u64 id; char name[16]; unsigned long[] stack"))
		die("errors.tsv, or its event");
	while ((line = strsep(&rest, "\n"))) {
		char *event = strsep(&line, "\t"), *error = strsep(&line, "\t"), *marked = strsep(&line, "\t");

		if (*event == '#' || !line || (strcmp(event, "fields") && !strchr(event, '/')))
			continue;
		unescape(marked);
		event = strcmp(event, "fields") ? event : "synthetic/rhist_errors";
		if (access(trigger(kernel_dir(), event), F_OK))
			skip("no such event", "%s", marked);
		else
			check_row(event, error, marked, line);
	}
	free(text);
	append(synthetic, "!rhist_errors");
}

/* Accepted commands that leave a remark in the log. */
static void notes(void)
{
	static const char *const marked = "hist:keys=common_pid:x=pid:onmax($x).save(pid^";
	static const char *const other = "syscalls/sys_enter_getsid";
	char expected[256] = "", *before, *after, *line;
	int error;

	if (testing_c()) {
		skip("C says nothing", "notes");
		return;
	}
	append(trigger(tracing_dir(), default_event), "hist:keys=nosuch");
	error = append(trigger(tracing_dir(), default_event), pathf("%.*s", (int)strcspn(marked, "^"), marked));
	ok(!error && is_last("rhist:syscalls:sys_enter_getpgid", log_notes[0], marked),
	   "a missing parenthesis is taken, and told of");
	append(trigger(tracing_dir(), default_event), "!hist:keys=common_pid:x=pid:onmax($x).save(pid)");

	append(trigger(tracing_dir(), default_event), "hist:keys=pid:v=pid");
	append(trigger(tracing_dir(), other), "hist:keys=pid:w=$v");
	line = slurp(trigger(tracing_dir(), other));
	if (line && strstr(line, " [active]"))
		*strstr(line, " [active]") = 0;
	snprintf(expected, sizeof(expected), "%ssyscalls:sys_enter_getsid: %s", log_notes[1], line ?: "");
	free(line);
	error = append(trigger(tracing_dir(), default_event), "!hist:keys=pid:v=pid");
	ok(error == -EBUSY && is_last("rhist:syscalls:sys_enter_getpgid", expected, "^hist:keys=pid:v=pid"),
	   "EBUSY: the trigger that refers to it is named");
	before = slurp(trigger(tracing_dir(), default_event));
	truncate_file(pathf("%s/error_log", tracing_dir()));
	error = truncate_file(trigger(tracing_dir(), default_event));
	after = slurp(trigger(tracing_dir(), default_event));
	ok(!error && before && after && !strcmp(before, after) &&
	   is_last("rhist:syscalls:sys_enter_getpgid", expected, "^>"), "also when > removes nothing");
	free(before);
	free(after);
	append(trigger(tracing_dir(), other), "!hist:keys=pid:w=$v");
	append(trigger(tracing_dir(), default_event), "!hist:keys=pid:v=pid");

	if (access(pathf("%s/snapshot", tracing_dir()), F_OK)) {
		skip("no snapshots here", "a second snapshot()");
		return;
	}
	append(trigger(tracing_dir(), default_event), "hist:keys=pid:x=pid:onchange($x).snapshot()");
	error = append(trigger(tracing_dir(), other), "hist:keys=pid:x=pid:onchange($x).snapshot()");
	ok(error == -EBUSY && is_last("rhist:syscalls:sys_enter_getsid", "Another trigger has a snapshot() action already",
				      "hist:keys=pid:x=pid:onchange($x).^snapshot()"), "a second snapshot()");
	append(trigger(tracing_dir(), default_event), "!hist:keys=pid:x=pid:onchange($x).snapshot()");
}

/* error_log itself: eight entries, the oldest first. */
static void error_log(void)
{
	char log[PATH_MAX], expected[4096], *text, *before, *p;
	size_t used = 0;
	double last = 0;
	struct stat st;
	bool ordered = true;
	int entries = 0;

	snprintf(log, sizeof(log), "%s/error_log", tracing_dir());
	ok(!truncate_file(log), "error_log can be truncated");
	text = slurp(log);
	ok(text && !*text, "and is empty then");
	free(text);
	for (int i = 0; i < 11; i++)
		append(trigger(tracing_dir(), default_event), pathf("hist:keys=nosuch%d", i));
	text = slurp(log);
	for (int i = 3; i < 11; i++)
		used += snprintf(expected + used, sizeof(expected) - used,
				 "hist:syscalls:sys_enter_getpgid: error: Couldn't find field\n"
				 "  Command: hist:keys=nosuch%d\n                     ^\n", i);
	/* takes the times off */
	for (p = text; p && *p == '['; entries++) {
		unsigned long secs, usecs;
		char *end = strstr(p, "] "), *from = p;
		int got = 0;

		if (!end || sscanf(p, "[%lu.%6lu]%n", &secs, &usecs, &got) != 2 || p + got != end + 1 || got < 14 ||
		    secs + usecs / 1e6 < last)
			ordered = false;
		last = secs + usecs / 1e6;
		for (int newlines = 0; *p && newlines < 3; p++)
			newlines += *p == '\n';
		if (end) {
			memmove(from, end + 2, strlen(end + 2) + 1);
			p -= end + 2 - from;
		}
	}
	ok(text && !strcmp(text, expected), "error_log keeps eight entries, the oldest first");
	if (text && strcmp(text, expected))
		note("%s", text);
	ok(ordered && entries == 8, "with times that do not go back");
	free(text);
	before = slurp(log);
	ok(!append(log, "x"), "a write to it is taken");
	text = slurp(log);
	ok(before && text && !strcmp(before, text), "and does nothing");
	free(before);
	free(text);
	ok(!stat(log, &st) && (st.st_mode & 07777) == 0640, "its mode is 640");
	if (testing_c()) {
		skip("this is C's", "C's own log has nothing of it");
	} else {
		truncate_file(pathf("%s/error_log", kernel_dir()));
		append(trigger(tracing_dir(), default_event), "hist:keys=nosuch");
		text = slurp(pathf("%s/error_log", kernel_dir()));
		ok(text && !*text, "C's own log has nothing of it");
		free(text);
	}
	for (int i = 0; i < 11; i++)
		append(trigger(tracing_dir(), default_event), pathf("hist:keys=nosuch%d:", i));
	text = slurp(log);
	entries = 0;
	for (p = text; p && (p = strstr(p, "rhist:")); p++)
		entries++;
	ok(testing_c() || (entries == 8 && !strstr(text, "nosuch2:") && strstr(text, "nosuch3:")),
	   "of those of our own it keeps eight, too");
	free(text);
	ok(!put_len(log, O_TRUNC, "\n", 1), "echo > error_log");
	text = slurp(log);
	ok(text && !*text, "empties it");
	free(text);
}

int main(void)
{
	struct totals totals;
	unsigned long fired = 0;

	for (unsigned int i = 0; i < 2; i++) {
		const char *dir = i ? tracing_dir() : kernel_dir();

		if (i && testing_c())
			break;
		truncate_file(trigger(dir, default_event));
		if (append(trigger(dir, default_event), standing()))
			die("%s: %s", dir, standing());
	}
	if (append(pathf("%s/synthetic_events", kernel_dir()), BEYOND_FIELDS))
		die("%s", BEYOND_FIELDS);
	for (unsigned int i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		check(texts[i].verdict, texts[i].event, texts[i].text, texts[i].len);
		if (i % 10 == 0) {
			syscall(SYS_getpgid, 0);
			fired++;
		}
	}
	append(pathf("%s/synthetic_events", kernel_dir()), "!beyond");
	lengths();
	table();
	notes();
	odd_writes();
	error_log();
	if (testing_c())
		skip("C's counts begin anew after each command", "the earlier trigger has counted all %lu events", fired);
	else
		ok(read_totals(pathf("%s/events/%s/hist", tracing_dir(), default_event), &totals) &&
		   totals.hits == fired && totals.sum == fired && totals.entries == 1,
		   "the earlier trigger has counted all %lu events meanwhile", fired);
	truncate_file(trigger(kernel_dir(), default_event));
	truncate_file(trigger(tracing_dir(), default_event));
	truncate_file(pathf("%s/error_log", kernel_dir()));
	finish();
}
