/* SPDX-License-Identifier: Apache-2.0 */
/* Everything an L1 program without VMX needs. */
#pragma once

#include "acpi.h"
#include "boot.h"
#include "cpu.h"
#include "irq.h"
#include "lapic.h"
#include "page.h"
#include "print.h"
#include "report.h"
#include "timer.h"
#include "trap.h"
#include "types.h"
#include "x86.h"
