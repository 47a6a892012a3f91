# SPDX-License-Identifier: GPL-2.0
#
# Judges the output of a test in the Test Anything Protocol. Prints how many points passed, failed
# and were skipped, and, if there are none or not as many as planned, a sentence: that is one more
# failure, as a test that dies half-way has failed, whatever it printed before.

/^ok [0-9]+.*# SKIP/ { skipped++; next }
/^ok [0-9]/ { passed++ }
/^not ok [0-9]/ { failed++ }
/^1\.\.[0-9]+/ { plan = substr($1, 4) + 0; planned = 1 }

END {
	points = passed + failed + skipped
	is_short = !points || !planned || points != plan
	print passed + 0, failed + is_short, skipped + 0, is_short ? points " of " (planned ? plan : "?") " points" : ""
}
