// SPDX-License-Identifier: GPL-2.0
#define SIZE 512
#include "orc_flip.h"
