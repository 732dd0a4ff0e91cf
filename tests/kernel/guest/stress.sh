# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# Everything at once. What counts is the log.

row_stress() {
  sysctl -qw kernel.sched_schedstats=1
  groups lab/a lab/b lab/p/c lab/p/d
  "$LAB" stress -t "${STRESS_SECONDS:-300}" lab/a lab/b lab/p/c lab/p/d
  verdict "stress: ${STRESS_SECONDS:-300} s" $?
  echo max >$cgroup/lab/a/cpu.max
  [ -z "$(cat /sys/devices/system/cpu/offline)" ]
  verdict "stress: all CPUs are back" $?
  ungroup lab
}
