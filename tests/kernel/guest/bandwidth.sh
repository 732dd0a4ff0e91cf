# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# CFS bandwidth: where the runtime of a limited group goes.

row_bandwidth() {
  local quota workers
  groups lab/q
  for quota in 10000 50000; do
    for workers in 1 8; do
      put "$quota 100000" lab/q cpu.max
      label="$quota, $workers workers" lab bandwidth -g lab/q -w "$workers" -t 6
      judge "bandwidth: $quota of 100000, $workers workers: accounted for" "${got[accounted]}" '>=' 0.98
      judge "bandwidth: $quota of 100000, $workers workers: accounted for" "${got[accounted]}" '<=' 1.02
    done
  done
  feature BW_RETURN_ALL
  for quota in 10000 50000; do
    put "$quota 100000" lab/q cpu.max
    label="$quota, 8 workers, all returned" lab bandwidth -g lab/q -w 8 -t 6
    judge "bandwidth: all returned: parked (us)" "${got[parked_usec]}" '<=' 0
    judge "bandwidth: all returned: accounted for" "${got[accounted]}" '>=' 0.98
    judge "bandwidth: all returned: accounted for" "${got[accounted]}" '<=' 1.02
  done
  feature NO_BW_RETURN_ALL
  feature NO_BW_STATS
  ! grep -q stranded_usec $cgroup/lab/q/cpu.stat
  verdict "bandwidth: switched off, the fields are not there" $?
  feature BW_STATS
  ungroup lab
}

# A group without a limit has nothing in its pools, and one that wants little strands nothing.
row_bandwidth_quiet() {
  groups lab/q lab/r
  put "20000 100000" lab/q cpu.max
  sleep 1
  [ "$(awk '$1 == "stranded_usec" || $1 == "nr_late_periods" { s += $2 } END { print s + 0 }' $cgroup/lab/q/cpu.stat)" = 0 ]
  verdict "bandwidth: no demand, no loss" $?
  [ "$(awk '$1 ~ /^(global|local)_runtime_usec$/ || $1 ~ /^(parked|debt)_usec$/ { s += $2; n++ } END { print s + 0, n }' $cgroup/lab/r/cpu.stat)" = "0 4" ]
  verdict "bandwidth: no limit, nothing in the pools" $?
  ungroup lab
}
