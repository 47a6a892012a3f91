# SPDX-License-Identifier: GPL-2.0
#
# The program that is the example of the manual page tracefs_sql(3), without the marks of the formatter.
/^\.SH "EXAMPLE/,/^\.SH "FILES/ {
	/^\./d
	s/\\-/-/g
	s/\\&//g
	s/\\(aq/'/g
	s/\\\*(Aq/'/g
	s/\\e/\\/g
	p
}
