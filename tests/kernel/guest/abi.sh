# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# The interfaces: attributes of a task, values of the files, the marker and the switches.

row_attributes() {
  "$LAB" attributes
  verdict "attributes: latency nice of a task" $?
}

row_files() {
  local bad
  groups lab/a
  for bad in 20 -21 1000 99999999999 x ''; do
    if (echo "$bad" >$cgroup/lab/a/cpu.latency.nice) 2>/dev/null; then verdict "files: latency nice '$bad' is refused" 1; fi
  done
  [ "$(cat $cgroup/lab/a/cpu.latency.nice)" = 0 ]
  verdict "files: bad values change nothing" $?
  for good in -20 19 0; do put $good lab/a cpu.latency.nice; done
  verdict "files: -20, 19 and 0 read back" 0
  ! [ -e $cgroup/cpu.latency.nice ]
  verdict "files: none on the root" $?
  ungroup lab
}

row_switches() {
  local s=/proc/sys/kernel/sched_cpuclass_features abi mask bit name value
  abi=$(cat /proc/sys/kernel/sched_cpuclass_abi)
  [ "$abi" = 127 ]
  verdict "switches: all seven parts are there (abi $abi)" $?
  mask=$(cat $s)
  [ "$mask" = $((127 & ~16 & ~64)) ]
  verdict "switches: the defaults ($mask)" $?
  bit=0
  for name in LATENCY_NICE CORE_TAG CORE_LATENCY_NICE IDLEST_UTIL IDLEST_UTIL_LOCAL BW_STATS BW_RETURN_ALL; do
    echo $((mask ^ (1 << bit))) >$s
    value=$([ $((mask >> bit & 1)) = 1 ] && echo "NO_$name" || echo "$name")
    grep -qw "$value" $features && [ "$(cat $s)" = $((mask ^ (1 << bit))) ]
    verdict "switches: $name by sysctl shows in debugfs" $?
    echo $mask >$s
    feature "$value"
    [ "$(cat $s)" = $((mask ^ (1 << bit))) ]
    verdict "switches: $name by debugfs shows in sysctl" $?
    echo $mask >$s
    bit=$((bit + 1))
  done
  if (echo $((mask | 128)) >$s) 2>/dev/null; then verdict "switches: an unknown bit is refused" 1; fi
  [ "$(cat $s)" = "$mask" ]
  verdict "switches: an unknown bit changes nothing" $?
  if (echo 1 >/proc/sys/kernel/sched_cpuclass_abi) 2>/dev/null; then verdict "switches: the marker is read-only" 1; fi
}

# Not a row of its own: what follows in this boot runs with every switch off.
row_all_off() {
  echo 0 >/proc/sys/kernel/sched_cpuclass_features
  # the one that is mainline's behaviour stays
  feature IDLEST_UTIL
}
