/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Limits on the generated scripts that may fall under a known difference: an explanation must not
 * explain too much.
 */
#ifndef CEILINGS_H
#define CEILINGS_H

#include "tracing.h"

struct ceiling {
	/*
	 * Scripts of the short run on user-mode Linux, with its seed, rows included; other runs are
	 * longer or shorter.
	 */
	unsigned int most;
	/* Reason why it may occur nowhere; NULL if it has to occur. */
	const char *seldom;
	/* Returns true if this kernel needs no limit; may be NULL. */
	bool (*unlimited)(void);
};

/* Times it was met, and number of scripts with it, counted when each is done. */
struct tally {
	unsigned int met, before, scripts;
};

__maybe static void count_script(struct tally *tally)
{
	tally->scripts += tally->met != tally->before;
	tally->before = tally->met;
}

/*
 * `pinned`: the limits were measured with this run, so the count is above 0 and hardly above the
 * limit: 10% and two more allow for times and pids, which the seed does not determine. Otherwise
 * `share` is the length of the run relative to the pinned one; another seed may have half as many
 * again, plus five.
 */
__maybe static void check_ceiling(const struct ceiling *ceiling, const struct tally *tally, bool pinned, double share,
				  const char *heading, const char *reason)
{
	unsigned int most = pinned ? 1.1 * ceiling->most + 2 : 1.5 * share * ceiling->most + 5;
	bool limited = !ceiling->unlimited || !ceiling->unlimited();
	bool enough = !pinned || ceiling->seldom || tally->scripts;

	ok((tally->scripts <= most || !limited) && enough, "%s: %s: %u scripts, at most %u", heading, reason, tally->scripts, most);
	if (!tally->scripts && ceiling->seldom)
		note("none: %s", ceiling->seldom);
}

#endif
