#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# /init.sh of the peer image: KVM as L0, QEMU with the bench image as its L1. sets=NAME,... on the kernel command line says
# which sets run, each in a fresh QEMU; its rows go to the console behind a line `SET name`. Judges nothing.
. /common.sh

# What Nidus' hyperv=on offers, as far as KVM has it.
enlightenments=hv-relaxed,hv-time,hv-vpindex,hv-vapic,hv-tlbflush,hv-evmcs,hv-emsr-bitmap

run_set() {
	apicv=1
	cpu=host
	[ "$1" = noapicv ] && apicv=0
	[ "$1" = hyperv ] && cpu=host,$enlightenments
	modprobe kvm_intel enable_apicv=$apicv || echo "FAIL modprobe"
	echo "SET $1"
	qemu-system-x86_64 -accel kvm -cpu $cpu -m 64 -nodefaults -no-user-config -display none -serial stdio -no-reboot \
		-device isa-debug-exit,iobase=0xf4,iosize=4 -kernel /bench.elf -append "set=$1" </dev/null
	got=$?
	[ $got = 1 ] || echo "FAIL set_$1 QEMU ends with $got" # (0 << 1) | 1
	modprobe -r kvm_intel
}

for set in $(option sets | tr , ' '); do
	run_set "$set"
done
finish
