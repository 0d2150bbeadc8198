#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# /init.sh of the KVM image: loads kvm_intel, runs two L2s in QEMU, looks at the kernel's log, powers off.
# On the kernel command line: l2=small or l2=linux runs one of them only, hyperv=on tells what to expect.
. /common.sh

l2_cpus=$(option l2_cpus)

# The VMCS that kvm_intel says it uses is the one this machine is for.
check_evmcs() {
	dmesg | grep -q 'KVM: vmx: using Hyper-V Enlightened VMCS' && used=on || used=off
	[ "$used" = "$(hyperv_expected)" ] && pass evmcs || fail evmcs "$used"
}

# run_l2 NAME WANTED_STATUS QEMU_ARGUMENT...: the L2's console goes to /tmp/NAME and, prefixed, to ours.
run_l2() {
	name=$1
	want=$2
	shift 2
	echo "START $name uptime=$(cut -d' ' -f1 /proc/uptime)"
	qemu-system-x86_64 -accel kvm -cpu host -smp "${l2_cpus:-1}" -nodefaults -no-user-config -display none \
		-serial stdio -no-reboot "$@" </dev/null >"/tmp/$name" 2>"/tmp/$name.err"
	got=$?
	echo "END $name uptime=$(cut -d' ' -f1 /proc/uptime)"
	sed "s/^/  $name: /" "/tmp/$name" "/tmp/$name.err"
	[ "$got" = "$want" ] && pass "${name}_status" || fail "${name}_status" "got $got want $want"
}

# l2_says NAME CHECK PATTERN
l2_says() {
	grep -q "$3" "/tmp/$1" && pass "$1_$2" || fail "$1_$2" "no line like: $3"
}

check_small_l2() {
	run_l2 l2_small 33 -m 32 -device isa-debug-exit,iobase=0xf4,iosize=4 -kernel /l2/small.elf
	l2_says l2_small starts '^L2 small kernel'
	for check in multiboot hypervisor memory; do
		l2_says l2_small $check "^L2 PASS $check"
	done
	l2_says l2_small ends '^L2 end'
}

check_linux_l2() {
	run_l2 l2_linux 0 -m 256 -kernel /l2/vmlinuz -initrd /l2/initrd \
		-append "console=ttyS0 quiet panic=-1 expect_cpus=${l2_cpus:-1}"
	l2_says l2_linux init '^INIT tsc='
	l2_says l2_linux userland '^L2 userland, '
}

check_cpus
check_vmx
check_hyperv
check_modprobe
check_evmcs
[ "$(option l2)" = linux ] || check_small_l2
[ "$(option l2)" = small ] || check_linux_l2
check_kernel_log
finish
