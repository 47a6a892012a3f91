# SPDX-License-Identifier: MIT OR Apache-2.0
# The program itself supplies the completions, since they depend on the kernel.
source <(COMPLETE=bash rhist)
