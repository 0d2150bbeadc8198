# SPDX-License-Identifier: Apache-2.0
# Shared by the init scripts of the client images. Verdict lines: PASS name, FAIL name what.
export PATH=/bin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
failed=0
checks=0

pass() {
	checks=$((checks + 1))
	echo "PASS $1"
}

fail() {
	checks=$((checks + 1))
	failed=$((failed + 1))
	echo "FAIL $*"
}

option() {
	sed -n "s/.*\\b$1=\\([^ ]*\\).*/\\1/p" /proc/cmdline
}

# expect_cpus=N on the kernel command line
check_cpus() {
	want=$(option expect_cpus)
	got=$(grep -c '^processor' /proc/cpuinfo)
	[ "$got" = "${want:-1}" ] && pass cpus || fail cpus "got $got want ${want:-1}"
}

check_vmx() {
	grep -q '^flags.* vmx ' /proc/cpuinfo && pass vmx || fail vmx "no vmx flag in /proc/cpuinfo"
}

check_modprobe() {
	modprobe kvm_intel && [ -c /dev/kvm ] && pass modprobe_kvm_intel || fail modprobe_kvm_intel "status $?"
	dmesg | grep -i 'kvm:' | sed 's/^/  kvm: /'
}

# Time passes while the CPU sleeps: a timer interrupt wakes it. Hundredths of a second by /proc/uptime.
check_clock() {
	echo "clocksource $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
	start=$(cut -d' ' -f1 /proc/uptime | tr -d .)
	usleep 200000
	end=$(cut -d' ' -f1 /proc/uptime | tr -d .)
	[ $((end - start)) -ge 20 ] && pass clock_advances || fail clock_advances "$start then $end"
}

# hyperv=on on the kernel command line
hyperv_expected() {
	[ "$(option hyperv)" = on ] && echo on || echo off
}

# Where it is expected the kernel must find Hyper-V and take its clock; elsewhere nothing of that.
check_hyperv() {
	clock=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)
	dmesg | grep -q 'Hypervisor detected: Microsoft Hyper-V' && found=on || found=off
	[ "$found" = "$(hyperv_expected)" ] && pass hyperv_detected || fail hyperv_detected "$found"
	case "$found $clock" in
	"on hyperv_clocksource_tsc_page") pass clocksource ;;
	"on "* | *hyperv*) fail clocksource "$clock" ;;
	*) pass clocksource ;;
	esac
}

# Nothing that a sound machine does not cause. `lost` and `spurious` are about interrupts and timer ticks.
# Two lines are let through: Linux's opinion of the CPU model without microcode, and that it prefers Hyper-V's clock.
check_kernel_log() {
	dmesg | grep -E 'WARNING:|BUG:|unchecked MSR|[Uu]nstable|[Ll]ost|[Ss]purious|[Ll]ockup|Call Trace' |
		grep -v -e 'RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable' \
			-e 'tsc: Marking TSC unstable due to running on Hyper-V' >/tmp/bad
	[ -s /tmp/bad ] || { pass kernel_log; return; }
	fail kernel_log "$(wc -l </tmp/bad) lines"
	sed 's/^/  log: /' /tmp/bad
}

# Power-off waits for the UART: what is still in the kernel buffer would be lost.
finish() {
	echo "DONE $checks checks, $failed failed"
	usleep 300000
	poweroff -f
}
