#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# /init.sh of Xen's dom0: looks at what Xen offers, runs the small kernel as a PVH guest (an L2 where Xen is L1), powers off.
. /common.sh

check_xen() {
	[ "$(cat /sys/hypervisor/type)" = xen ] && pass xen || fail xen "no Xen below this kernel"
	modprobe xenfs && mount -t xenfs xenfs /proc/xen
	grep -q control_d /proc/xen/capabilities && pass dom0 || fail dom0 "no control_d in /proc/xen/capabilities"
}

# xl waits for the guest's console, which is a pseudo-terminal.
start_daemons() {
	mkdir /dev/pts && mount -t devpts devpts /dev/pts && modprobe xen_evtchn && modprobe xen_gntdev &&
		xenstored --pid-file /run/xenstored.pid && xen-init-dom0 && xenconsoled && pass daemons || fail daemons "status $?"
}

# What Xen can do with the processor's VMX.
check_hvm() {
	xl info | sed -n 's/^\(virt_caps\|xen_caps\|xen_version\) *: / \1: /p' >/tmp/caps
	cat /tmp/caps
	grep 'virt_caps' /tmp/caps | grep -q ' hvm hap' && pass hvm_hap || fail hvm_hap "see virt_caps"
	grep -q 'hvm-3.0-x86_64' /tmp/caps && pass hvm_x86_64 || fail hvm_x86_64 "see xen_caps"
}

# l2_says CHECK LINE: the guest writes to Xen's debug port, and Xen its lines to the ring of its own messages.
l2_says() {
	grep -q "(d1) $2\$" /tmp/ring && pass "l2_$1" || fail "l2_$1" "no line: $2"
}

check_guest() {
	echo "START l2 uptime=$(cut -d' ' -f1 /proc/uptime)"
	timeout 120 xl create -F /l2/small.cfg
	got=$?
	echo "END l2 uptime=$(cut -d' ' -f1 /proc/uptime)"
	[ "$got" = 0 ] && pass l2_status || fail l2_status "got $got want 0"
	xl dmesg >/tmp/ring
	l2_says starts 'L2 small kernel'
	for check in pvh hypervisor memory; do
		l2_says $check "L2 PASS $check"
	done
	l2_says ends 'L2 end'
}

check_cpus
check_clock
check_xen
start_daemons
check_hvm
check_guest
check_kernel_log
finish
