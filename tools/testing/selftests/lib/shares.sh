# SPDX-License-Identifier: GPL-2.0
#
# To be included by tests that sample the load of shares.c.

# The names, and their shares of the time in percent.
LOAD="share_a=50 share_b=30 share_c=20"

# fit WHO SPENT HITS: true if the samples of each name, in the file HITS, are its share of the time
# in SPENT, within four sigma
fit()
{
	awk -v who="$1" '
		NR == FNR { spent[$1] = $2; time += $2; next }
		{ hits[$1] = $2; samples += $2 }
		END {
			for (name in spent) {
				p = spent[name] / time
				off = hits[name] - samples * p
				variance = samples * p * (1 - p)
				if (!variance) exit 1
				printf "# %s, %s: %d of %d samples, %.2f %% of the time, %.2f sigma^2\n",
					who, name, hits[name], samples, 100 * p, off * off / variance
				if (off * off > 16 * variance) wrong++
			}
			exit !(samples > 100 && !wrong)
		}' "$2" "$3"
}

# samples FILE: prints name and hits of each row of a histogram by comm
samples() { sed -n 's/^{ comm: \(share_.\) .*hitcount: *\([0-9]*\)$/\1 \2/p' "$1"; }
