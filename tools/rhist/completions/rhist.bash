# SPDX-License-Identifier: MIT OR Apache-2.0
# The program itself knows what can follow, since that depends on the kernel.
source <(COMPLETE=bash rhist)
