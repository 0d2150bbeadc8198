#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# /init.sh of the Linux L2: shows that its userland runs, powers off.
. /common.sh

check_cpus
echo "L2 userland, $(nproc) CPUs, $(grep -c . /proc/interrupts) interrupt lines"
finish
