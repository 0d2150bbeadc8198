#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# /init.sh of the Linux image: looks at the machine, prints one verdict line per question, powers off.
. /common.sh

check_cpus
check_vmx
check_clock
check_hyperv
check_kernel_log
finish
