/* SPDX-License-Identifier: Apache-2.0 */
/* Hyper-V's interface as a personality of a guest. Only boot/main.c needs to know. */
#ifndef NIDUS_HYPERV_HYPERV_H
#define NIDUS_HYPERV_HYPERV_H

#include "hv/personality.h"

extern const struct personality hyperv;

#endif
