#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# /init.sh of the host image: Linux with KVM as L0, whose QEMU boots the Nidus of the second archive (/nidus). On the kernel
# command line: boot=kernel|cdrom|ovmf, qemu_machine=pc|q35, qemu_cpus=N, evmcs=on, hv=WORD for Nidus' own command line.
. /common.sh

# What Hyper-V's guests are offered, by QEMU's names.
HYPERV=hv-relaxed,hv-time,hv-vpindex,hv-vapic,hv-tlbflush,hv-evmcs,hv-emsr-bitmap

# qemu_boot: arguments for the way to boot. An ISO says itself what to start.
qemu_boot() {
	case "$(option boot)" in
	cdrom) echo "-cdrom /nidus/lab.iso" ;;
	ovmf) echo "-bios /nidus/ovmf.fd -cdrom /nidus/lab.iso" ;;
	*) echo "-kernel /nidus/nidus32.elf" ;;
	esac
}

# Nidus' console goes to ours as it comes; the run's status is that of QEMU.
run_nidus() {
	cpu=host
	[ "$(option evmcs)" = on ] && cpu=host,$HYPERV
	echo "START nidus uptime=$(cut -d' ' -f1 /proc/uptime)"
	set -- -accel kvm -cpu $cpu -machine "$(option qemu_machine)" -smp "$(option qemu_cpus)" -m 512 -nodefaults -no-user-config \
		-display none -serial stdio -no-reboot $(qemu_boot)
	if [ "$(option boot)" = kernel ]; then
		qemu-system-x86_64 "$@" -append "console=com1 $(option hv)" -initrd "$(cat /nidus/module)" </dev/null
	else
		qemu-system-x86_64 "$@" </dev/null
	fi
	got=$?
	sleep 1 # the UART is slower than QEMU
	echo "END nidus uptime=$(cut -d' ' -f1 /proc/uptime)"
	[ "$got" = 0 ] && pass nidus_status || fail nidus_status "got $got want 0"
}

check_vmx
check_modprobe
run_nidus
finish
