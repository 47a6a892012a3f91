// SPDX-License-Identifier: GPL-2.0
#define SIZE 256
#include "orc_flip.h"
