// SPDX-License-Identifier: GPL-2.0
/*
 * sidebyside [--count N] [--seed S] [--index I]
 *
 * Gives the same commands to the kernel's own trigger files and to ours, fires the same events, and
 * compares all visible results: errno, error_log with its carets (errorlog.h), the line of the
 * trigger, the histogram, hist_debug where the kernel has it, and whether the line, fed back with a
 * `!`, removes the trigger. First all rows of rows.h, then N texts made from grammar.h with the
 * random numbers of seed S. One to four texts are a script: later ones work on the triggers that
 * the first has left. Known differences are listed in differences.h.
 *
 *   --count N   number of texts; by default 2000, with LONG=1 20000, on a kernel with sanitizers
 *               300
 *   --seed S    by default the same one each time, so that a short run shows the effect of a
 *               change; in a long run (--long) another one each time. It is printed.
 *   --index I   of all scripts of that seed, only this one, with both sides' answers
 */
#define _GNU_SOURCE
#include "differences.h"
#include "events.h"
#include "rows.h"

static bool verbose;
static unsigned int shown_failures;

/* Result of a script. In order: the later ones win. */
enum verdict { SAME, UNASKED, DIFFERENT, FAILED, VERDICTS };

static const char *const verdict_names[] = {
	"same", "not asked C", "known difference", "failed",
};

/* Commands for an event, one after the other. */
struct script {
	const struct source *source;
	/* the source; without its sibling if no command uses that */
	struct source own;
	unsigned int count;
	struct step {
		bool sibling, truncate;
		struct text text;
	} steps[6];
	char name[80];			/* shown with a failure */
	bool exact;			/* see rows.h */
};

static const char *event_file(const char *dir, const struct source *source, bool sibling, const char *file)
{
	return pathf("%s/events/%s/%s", dir, sibling ? source->sibling : source->event, file);
}

static void note_answer(const char *who, const struct answer *answer)
{
	char *log = answer->log ? escaped(answer->log, strlen(answer->log)) : NULL;

	note("%s: %s %s", who, errno_name(answer->error), log ? log : "");
	if (verbose && answer->lines)
		note("%s", answer->lines);
	if (verbose && answer->hist)
		note("%s", answer->hist);
	free(log);
}

/* Prints a failure with all that is needed to reproduce it. */
static enum verdict failed(const struct script *script, unsigned int step, const struct question *q, const char *what)
{
	if (shown_failures++ >= 40)
		return FAILED;
	note("%s: %s", script->name, what);
	for (unsigned int i = 0; i <= step && i < script->count; i++) {
		char *text = escaped(script->steps[i].text.bytes, script->steps[i].text.len);

		note("%u: %s: %s%s", i, script->steps[i].sibling ? script->source->sibling : script->source->event,
		     script->steps[i].truncate ? "(truncate)" : "", text);
		free(text);
	}
	if (q) {
		note_answer("C   ", &q->c);
		note_answer("ours", &q->ours);
	}
	return FAILED;
}

static void forget(struct answer *answer)
{
	free(answer->log);
	free(answer->lines);
	free(answer->hist);
	free(answer->debug);
	memset(answer, 0, sizeof(*answer));
}

/* Does a command on one side. */
static void ask(const char *dir, const struct source *source, const struct step *step, struct answer *answer)
{
	const char *trigger = event_file(dir, source, step->sibling, "trigger");
	static bool clean;	/* both logs */

	forget(answer);
	if (!clean) {
		truncate_file(pathf("%s/error_log", kernel_dir()));
		truncate_file(pathf("%s/error_log", tracing_dir()));
	}
	if (step->truncate)
		answer->error = truncate_file(trigger);
	else
		answer->error = put_len(trigger, O_APPEND, step->text.bytes, step->text.len);
	answer->log = slurp(pathf("%s/error_log", dir));
	clean = answer->log && !*answer->log;
	without_times(answer->log);
}

/* Spare bytes behind a text that may grow: twenty for each width in it. */
#define ROOM 4096

/* One file of the events of a script, all of them one after the other. */
static char *file_of_events(const char *dir, const struct source *source, const char *name)
{
	char *first = slurp(event_file(dir, source, false, name)), *second, *both;

	/* The list of available commands may differ. */
	if (first && !strcmp(name, "trigger") && *first == '#')
		*first = 0;
	if (!first || !source->sibling)
		return first;
	second = slurp(event_file(dir, source, true, name));
	if (second && !strcmp(name, "trigger") && *second == '#')
		*second = 0;
	/* With space for adjust() to insert text. */
	if (asprintf(&both, "%s\n---\n%s%*s", first, second ? second : "(unreadable)", ROOM, "") < 0)
		abort();
	both[strlen(both) - ROOM] = 0;
	free(first);
	free(second);
	return both;
}

static void look(const char *dir, const struct source *source, struct answer *answer)
{
	answer->lines = file_of_events(dir, source, "trigger");
	answer->hist = file_of_events(dir, source, "hist");
}

/* Are there triggers? */
static bool any_trigger(const char *dir, const struct source *source)
{
	char *lines = file_of_events(dir, source, "trigger");
	bool any = !lines || strspn(lines, "\n-") != strlen(lines);

	free(lines);
	return any;
}

/* Returns true if all is counted. Without hitcounts, nothing can be added up. */
static bool adds_up(const struct script *script, const char *hist)
{
	const char *trigger = script->steps[0].text.bytes;
	struct totals t;

	if (strstr(trigger, "nohitcount") || strstr(trigger, "hitcount.percent") || strstr(trigger, "hitcount,hitcount") ||
	    strstr(trigger, ":pause"))
		return true;
	return hist && parse_totals(hist, &t) && t.hits && t.hits == t.sum && t.entries == t.lines && (!t.dropped || slow_kernel());
}

/* Compares a text of C with ours, ignoring known differences. */
static bool same_text(char *c, const char *ours, bool *differs)
{
	if (!c || !ours)
		return c == ours;
	for (unsigned int i = 0; i <= DIFFERENCES; i++) {
		if (!strcmp(c, ours))
			return true;
		if (i < DIFFERENCES && differences[i].adjust) {
			size_t before = strlen(c);

			differences[i].adjust(c);
			if (strlen(c) != before) {
				differences[i].tally.met++;
				*differs = true;
			}
		}
	}
	return false;
}

enum explanation { ANSWERS, SHOWS, LINES };

static bool explained(const struct script *script, const struct question *q, enum explanation what)
{
	for (unsigned int i = 0; i < DIFFERENCES && !script->exact; i++) {
		const struct difference *d = &differences[i];
		bool (*explains)(const struct question *) = what == ANSWERS ? d->answers : what == SHOWS ? d->shows : d->lines;

		if (explains && explains(q)) {
			differences[i].tally.met++;
			return true;
		}
	}
	return false;
}

static void meet(const char *heading)
{
	for (unsigned int i = 0; i < DIFFERENCES; i++)
		differences[i].tally.met += !strcmp(differences[i].heading, heading);
}

/* Compares the files after a command that both sides have accepted. */
static enum verdict compare_files(const struct script *script, unsigned int step, struct question *q)
{
	bool differs = false;

	look(kernel_dir(), script->source, &q->c);
	look(tracing_dir(), script->source, &q->ours);
	q->c.debug = file_of_events(kernel_dir(), script->source, "hist_debug");
	if (q->c.debug) {
		/* Some kernels lack it. */
		q->ours.debug = file_of_events(tracing_dir(), script->source, "hist_debug");
		mask(q->c.debug);
		mask(q->ours.debug);
		as_c_debugs(q->ours.debug);
	}
	for (unsigned int i = 0; i < 3; i++) {
		static const char *const names[] = { "the triggers differ", "the histograms differ", "hist_debug differs" };
		char *c = i == 0 ? q->c.lines : i == 1 ? q->c.hist : q->c.debug;
		char *ours = i == 0 ? q->ours.lines : i == 1 ? q->ours.hist : q->ours.debug;

		if (same_text(c, ours, &differs))
			continue;
		/* A histogram contains the line, too. */
		if (explained(script, q, LINES) || (i == 1 && explained(script, q, SHOWS))) {
			differs = true;
			continue;
		}
		failed(script, step, q, names[i]);
		note_difference(c ? c : "", ours ? ours : "");
		return FAILED;
	}
	if (script->exact && !adds_up(script, q->ours.hist))
		return failed(script, step, q, "hits and entries do not add up");
	return differs ? DIFFERENT : SAME;
}

/* Feeds the lines of our triggers back with a `!`, to both sides, until all are gone. */
static enum verdict feed_back(const struct script *script, const struct question *asked)
{
	const struct source *source = script->source;
	enum verdict verdict = SAME;

	for (unsigned int sibling = 0; sibling <= (source->sibling != NULL); sibling++) {
		char *lines = slurp(event_file(tracing_dir(), source, sibling, "trigger")), *line = lines;

		while (line && *line && *line != '#') {
			struct step step = { .sibling = sibling };
			struct question q = { .text = &step.text };
			char *active = strstr(line, " [active]\n"), *paused = strstr(line, " [paused]\n");
			char *end = !active || (paused && paused < active) ? paused : active;

			if (!end)
				return failed(script, script->count, NULL, "a line of a trigger has no end");
			put(&step.text, "!");
			put_bytes(&step.text, line, end - line);
			ask(kernel_dir(), source, &step, &q.c);
			ask(tracing_dir(), source, &step, &q.ours);
			if (q.c.error && !q.ours.error) {
				/* C does not accept each line that it shows. */
				forget(&q.c);
				forget(&q.ours);
				free(lines);
				return DIFFERENT;
			}
			if (q.ours.error) {
				verdict = failed(script, script->count, &q, "a line cannot be fed back");
				note("%s", step.text.bytes);
			}
			forget(&q.c);
			forget(&q.ours);
			line = end + strlen(" [active]\n");
		}
		free(lines);
	}
	if (verdict == SAME && any_trigger(tracing_dir(), source))
		return failed(script, script->count, NULL, "the line of a trigger does not remove it");
	if (verdict == SAME && any_trigger(kernel_dir(), source)) {
		/*
		 * The difference about other names is the only one in which C does not find its own
		 * line again.
		 */
		struct question q = { .said = asked->said, .before = asked->before, .ours = { .error = -EEXIST, .log = (char *)"already exists" } };

		if (!script->exact && !explained(script, &q, ANSWERS))
			return failed(script, script->count, NULL, "the line of a trigger does not remove it in C");
		verdict = DIFFERENT;
	}
	return verdict;
}

/* Removes everything that is left on both sides. */
static bool clean(const struct source *source)
{
	for (unsigned int i = 0; i < 2; i++) {
		const char *dir = i ? tracing_dir() : kernel_dir();

		truncate_file(event_file(dir, source, false, "trigger"));
		if (source->sibling)
			truncate_file(event_file(dir, source, true, "trigger"));
	}
	return !any_trigger(kernel_dir(), source) && !any_trigger(tracing_dir(), source);
}

/* Runs a step on our side only: nothing may break, and the trigger can be removed again. */
static enum verdict ours_alone(const struct script *script, unsigned int step, struct answer *ours)
{
	ask(tracing_dir(), script->source, &script->steps[step], ours);
	script->source->fire();
	look(tracing_dir(), script->source, ours);
	return UNASKED;
}

/*
 * C and rhist each make a record of an event. Flags and preemption count may differ when an
 * interrupt comes between, and a kernel thread may be renamed while only one of the two looks. It
 * does not happen each time.
 */
static bool of_the_moment(const struct script *script)
{
	for (unsigned int i = 0; i < script->count; i++)
		if (memmem(script->steps[i].text.bytes, script->steps[i].text.len, "common_flags", 12) ||
		    memmem(script->steps[i].text.bytes, script->steps[i].text.len, "common_preempt_count", 20))
			return true;
	return !strcmp(script->source->event, tasks.event);
}

/*
 * Returns true if an answer is as promised by its row (see rows.h). Where C logs nothing, our log
 * has a sentence.
 */
static bool is_as_promised(const struct answer *answer, const char *says, bool of_c)
{
	if (!strcmp(says, OK))
		return !answer->error;
	if (*says)
		return answer->error && logged(answer, says);
	return answer->error && (of_c ? answer->log && !*answer->log : same_log("", answer->log, answer->error));
}

/* `says`: the answer to the last command that the row promises; see rows.h. NULL: any. */
static enum verdict run_once(const struct script *script, const char *says)
{
	enum verdict verdict = SAME, found;
	struct question q = { .event = script->source->event };
	char *said = strdup(""), *before = strdup(""), *report;
	bool fed_back = false;
	unsigned int i;

	for (i = 0; i < script->count && verdict < FAILED; i++) {
		const struct step *step = &script->steps[i];
		char *more;

		if (asprintf(&more, "%s%s%.*s", said, *said ? "\n" : "", (int)step->text.len, step->text.bytes) < 0)
			abort();
		free(said);
		q.said = said = more;
		if (asprintf(&more, "%s\n%.*s", before, (int)(filter_of(step->text.bytes) - step->text.bytes), step->text.bytes) < 0)
			abort();
		free(before);
		q.before = before = more;
		q.text = &step->text;
		for (unsigned int d = 0; d < DIFFERENCES; d++)
			if (differences[d].unasked && differences[d].unasked(&q)) {
				differences[d].tally.met++;
				verdict = ours_alone(script, i, &q.ours);
				break;
			}
		if (verdict == UNASKED) {
			/* Then the promise is ours, unless this is a known difference. */
			if (says && !is_as_promised(&q.ours, says, false) && !explained(script, &q, ANSWERS) &&
			    (c_reads_texts() || !strstr(q.said, "_val")))
				verdict = failed(script, i, &q, "rhist says something else than the row");
			break;
		}
		ask(kernel_dir(), script->source, step, &q.c);
		ask(tracing_dir(), script->source, step, &q.ours);
		if (says && i == script->count - 1 && !is_as_promised(&q.c, says, true))
			verdict = failed(script, i, &q, "C says something else than the row");
		if (q.c.error != q.ours.error || !same_log(q.c.log, q.ours.log, q.c.error)) {
			found = explained(script, &q, ANSWERS) ? DIFFERENT : failed(script, i, &q, "the answers differ");
			verdict = found > verdict ? found : verdict;
			/* The two sides are in different states from here on. */
			break;
		}
		if (strcmp(q.c.log, q.ours.log))
			meet(LOG_DIFFERS);
		if (!q.c.error)
			script->source->fire();
		if (!q.c.error || i) {
			found = compare_files(script, i, &q);
			verdict = found > verdict ? found : verdict;
		}
		if (verbose) {
			note("%u: %s", i, verdict_names[verdict]);
			note_answer("C   ", &q.c);
			note_answer("ours", &q.ours);
		}
	}
	if (verdict < FAILED && i == script->count) {
		found = feed_back(script, &q);
		fed_back = found == SAME;
		verdict = found > verdict ? found : verdict;
	}
	forget(&q.c);
	forget(&q.ours);
	/* By now, both sides must be empty. */
	if (!fed_back && !clean(script->source))
		verdict = failed(script, script->count, NULL, "there are triggers left");
	report = kernel_report();
	if (report) {
		verdict = failed(script, script->count, NULL, "the kernel reports");
		note("%s", report);
		free(report);
	}
	free(said);
	free(before);
	return verdict;
}

static enum verdict run(const struct script *script, const char *says)
{
	enum verdict verdict = run_once(script, says);

	for (unsigned int again = 0; again < 4 && verdict == FAILED && of_the_moment(script); again++) {
		note("%s: once more", script->name);
		for (unsigned int i = 0; i < DIFFERENCES; i++)
			differences[i].tally.met = differences[i].tally.before;
		verdict = run_once(script, says);
	}
	for (unsigned int i = 0; i < DIFFERENCES; i++)
		count_script(&differences[i].tally);
	return verdict;
}

/* To be called after all steps are made. */
static void choose_source(struct script *script, const struct source *source)
{
	bool sibling = false;

	for (unsigned int i = 0; i < script->count; i++)
		sibling |= script->steps[i].sibling;
	script->own = *source;
	if (!sibling)
		script->own.sibling = NULL;
	script->source = &script->own;
}

/* Returns true for a row about a list of processors, which is not possible with one processor. */
static bool names_processors(const struct row *row)
{
	return memmem(row->steps, row->len, "CPUS{", 5);
}

/* Returns true for the first of the exact rows of an event. */
static bool first_of_event(const struct row *row)
{
	const struct row *first = rows;

	while (!first->exact || strcmp(first->source->event, row->source->event))
		first++;
	return first == row;
}

/* C makes the synthetic events from others. */
static void make_synthetic(const char *event, bool on)
{
	const char *maker = !strcmp(event, "synthetic/rhist_c") ? "kprobes/rhist_c" : !strcmp(event, "synthetic/rhist_cs") ? "task/task_rename" : NULL;

	if (!maker)
		return;
	if (on)
		make(pathf("events/%s/trigger", maker), !strncmp(maker, "task", 4) ?
		     "hist:keys=common_pid:onmatch(task.task_rename).trace(rhist_cs,newcomm,pid)" :
		     "hist:keys=common_pid:va=u64,vh=s16,vc=u8:onmatch(kprobes.rhist_c).trace(rhist_c,$va,$vh,$vc,comm)");
	else
		truncate_file(pathf("%s/events/%s/trigger", kernel_dir(), maker));
}

static void run_row(unsigned int number, const struct row *row)
{
	struct script *script = calloc(1, sizeof(*script));
	const char *at = row->steps, *end = row->steps + row->len;
	char *name;

	while (at < end && script->count < 6) {
		const char *newline = memchr(at, '\n', end - at);
		size_t len = (newline ? newline : end) - at;
		struct step *step = &script->steps[script->count++];

		if (len && *at == '@')
			step->sibling = true, at++, len--;
		if (len == 1 && *at == '>')
			step->truncate = true;
		else if (row->exact)
			put(&step->text, "%s", sized(at));
		else
			put_bytes(&step->text, at, len);
		at += len + 1;
	}
	choose_source(script, row->source);
	script->exact = row->exact;
	snprintf(script->name, sizeof(script->name), "row %u", number);
	name = escaped(row->steps, row->len);
	if (rest_only() && strncmp(row->source->event, "kprobes/", 8) && !names_processors(row) &&
	    !(row->exact && first_of_event(row))) {
		free(name);
		free(script);
		return;
	}
	if (!is_there(row->source)) {
		skip("no such event", "%s: %.150s", row->section, name);
	} else if (names_processors(row) && sysconf(_SC_NPROCESSORS_CONF) < 2) {
		skip("one processor", "%s: %.150s", row->section, name);
	} else {
		make_synthetic(row->source->event, true);
		ok(run(script, row->says) != FAILED, "%s: %.150s", row->section, name);
		make_synthetic(row->source->event, false);
	}
	free(name);
	free(script);
}

/*
 * Makes a step that follows a trigger: itself, with flags, with a change, with a `!`, or something
 * else.
 */
static void follow(struct step *step, const struct step *first, const struct source *source)
{
	static const char *const flags[] = { ":pause", ":cont", ":clear", ":continue", ":pause:clear", ":size=256", ":sort=hitcount.descending" };

	step->sibling = source->sibling && percent(25);
	switch (below(8)) {
	case 0:
		step->truncate = percent(20);
		if (step->truncate)
			break;
		/* fall through */
	case 1:
		step->text = first->text;
		break;
	case 2:
		put(&step->text, "!");
		put_bytes(&step->text, first->text.bytes, first->text.len);
		break;
	case 3: case 4: case 5: {
		const char *filter = strstr(first->text.bytes, " if ");
		size_t at = filter ? (size_t)(filter - first->text.bytes) : first->text.len;
		const char *flag = PICK(flags);

		step->text = first->text;
		replace(&step->text, at, at, flag, strlen(flag));
		break;
	}
	case 6:
		step->text = first->text;
		mutate_once(&step->text);
		break;
	default:
		hist(&step->text, &source->fields, percent(30));
	}
}

static void make_script(struct script *script, uint64_t seed, uint64_t index)
{
	const struct source *source;
	unsigned int kind;

	memset(script, 0, sizeof(*script));
	seed_random(seed, index);
	source = generated_sources[below(sources_there)];
	snprintf(script->name, sizeof(script->name), "--seed %llu --index %llu", (unsigned long long)seed, (unsigned long long)index);
	kind = below(100);
	hist(&script->steps[0].text, &source->fields, kind >= 35 && percent(70));
	if (kind >= 60)
		mutate(&script->steps[0].text);
	script->count = 1;
	if (percent(25))
		for (unsigned int more = 1 + below(3); more; more--)
			follow(&script->steps[script->count++], &script->steps[0], source);
	for (unsigned int i = 0; i < script->count; i++)
		if (script->steps[i].text.len > 4200)
			script->steps[i].text.len = 4200;
	choose_source(script, source);
}

/* Scripts from `first` on, until they have had `texts` commands. */
static void run_scripts(uint64_t seed, uint64_t first, uint64_t texts)
{
	unsigned int verdicts[VERDICTS] = { 0 }, failures = 0;
	struct script *script = malloc(sizeof(*script));
	uint64_t index = first, commands = 0;
	double began = now();

	while (commands < texts) {
		enum verdict verdict;

		make_script(script, seed, index++);
		commands += script->count;
		verdict = run(script, NULL);
		verdicts[verdict]++;
		failures += verdict == FAILED;
		if ((index - first) % 100 == 0 || commands >= texts) {
			ok(!failures, "seed %llu, scripts before %llu", (unsigned long long)seed, (unsigned long long)index);
			failures = 0;
		}
	}
	note("%llu scripts with %llu texts, %.1f s: %u the same, %u not asked of C, %u known to differ, %u failed",
	     (unsigned long long)(index - first), (unsigned long long)commands, now() - began, verdicts[SAME],
	     verdicts[UNASKED], verdicts[DIFFERENT], verdicts[FAILED]);
	free(script);
}

/*
 * Keeps the events on in two instances, or stops that: triggers then do not patch the calls at them
 * in and out each time. Grace periods are expedited, too. This makes it several times faster.
 */
static void hold_events(bool on)
{
	static char *expedited;

	/* a kernel with one processor has none */
	if (on)
		expedited = slurp("/sys/kernel/rcu_expedited");
	if (expedited)
		append("/sys/kernel/rcu_expedited", on ? "1" : expedited);
	/* Also allocates the pages in which discarded records are made. */
	append(pathf("%s/events/oom/mark_victim/trigger", kernel_dir()), on ? "traceon" : "!traceon");
	for (unsigned int instance = 0; instance < 2; instance++) {
		const char *dir = pathf("%s/instances/sidebyside%u", kernel_dir(), instance);

		if (on && mkdir(dir, 0700))
			note("%s: %s", dir, strerror(errno));
		for (unsigned int i = 0; i < sources_there; i++)
			for (unsigned int sibling = 0; sibling <= (generated_sources[i]->sibling != NULL); sibling++)
				append(event_file(dir, generated_sources[i], sibling, "enable"), on ? "1" : "0");
		if (!on)
			rmdir(dir);
	}
}

/* Texts of the short run on user-mode Linux. */
enum { SHORT = 6000 };

int main(int argc, char **argv)
{
	static const struct option options[] = { CHOICE_OPTIONS, { 0 } };
	struct choice choice = choose(rest_only() ? 100 : slow_kernel() ? 300 : long_run() ? 20000 : user_mode_linux() ? SHORT : 2000);
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(&choice, option))
			return 2;
	verbose = choice.single;
	if (testing_c()) {
		skip("this is C's", "there is nothing beside it");
		finish();
	}
	open_kernel_log();
	make_events();
	load_events();
	find_sources();
	hold_events(true);
	pin(0);
	if (verbose) {
		run_scripts(choice.seed, choice.index, 1);
	} else {
		double began = now();

		for (unsigned int i = 0; i < ROWS; i++)
			run_row(i, &rows[i]);
		note("%zu rows, %.1f s", ROWS, now() - began);
		note("seed %llu", (unsigned long long)choice.seed);
		run_scripts(choice.seed, 0, choice.count);
		for (unsigned int i = 0; i < DIFFERENCES; i++)
			check_ceiling(&differences[i].ceiling, &differences[i].tally,
				      choice.seed == 1 && choice.count == SHORT && user_mode_linux(),
				      choice.count < SHORT ? 1 : choice.count / (double)SHORT, differences[i].heading,
				      differences[i].reason);
	}
	hold_events(false);
	unload_events();
	remove_events();
	finish();
}
