# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# Latency nice: the rows that count instructions (4 CPUs on 6.12, one on 6.1).

last_cpu() { echo $(($(nproc) > 1 ? 2 : 0)); }

hogs="-b lab/b0 -b lab/b1 -b lab/b2 -b lab/b3"
bursty="-r 2000 -s 6000 -R 8000 -S 8000 -t 6"

# A task that runs 300 us every 5 ms against four groups that run without end.
row_hogs() {
  local cpu base_avg base_p99 base_max
  cpu=$(last_cpu)
  groups lab/a lab/b0 lab/b1 lab/b2 lab/b3
  # shellcheck disable=SC2086 # the loads are words
  {
    label="0" lab latency -c "$cpu" -g lab/a $hogs -r 300 -s 5000 -t 5
    base_avg=${got[avg]} base_p99=${got[p99]} base_max=${got[max]}
    put -20 lab/a cpu.latency.nice
    label="-20" lab latency -c "$cpu" -g lab/a $hogs -r 300 -s 5000 -t 5
    judge "hogs: average at -20 of that at 0" "$(ratio "${got[avg]}" "$base_avg")" '<=' 0.15
    judge "hogs: p99" "$(ratio "${got[p99]}" "$base_p99")" '<=' 0.25
    judge "hogs: maximum" "$(ratio "${got[max]}" "$base_max")" '<=' 0.30
    feature NO_LATENCY_NICE
    label="-20, switched off" lab latency -c "$cpu" -g lab/a $hogs -r 300 -s 5000 -t 5
    judge "hogs: average switched off" "$(ratio "${got[avg]}" "$base_avg")" '>=' 0.98
    judge "hogs: average switched off" "$(ratio "${got[avg]}" "$base_avg")" '<=' 1.02
    judge "hogs: p99 switched off" "$(ratio "${got[p99]}" "$base_p99")" '>=' 0.98
    judge "hogs: p99 switched off" "$(ratio "${got[p99]}" "$base_p99")" '<=' 1.02
    feature LATENCY_NICE
    put 0 lab/a cpu.latency.nice
    label="task at -20" lab latency -c "$cpu" -g lab/a $hogs -r 300 -s 5000 -t 5 -n -20
    judge "hogs: average with the task at -20, its group at 0" "$(ratio "${got[avg]}" "$base_avg")" '<=' 0.15
  }
  ungroup lab
}

# A task that runs 2 ms and sleeps 6 ms against three that run 8 ms and sleep about as long: siblings.
row_bursty() {
  local cpu base_avg base_p90 base_p99 base_max
  cpu=$(last_cpu)
  groups lab/a lab/b0 lab/b1 lab/b2
  # shellcheck disable=SC2086
  {
    label="0" lab latency -c "$cpu" -g lab/a -b lab/b0 -b lab/b1 -b lab/b2 $bursty
    base_avg=${got[avg]} base_p90=${got[p90]} base_p99=${got[p99]} base_max=${got[max]}
    put -20 lab/a cpu.latency.nice
    label="-20" lab latency -c "$cpu" -g lab/a -b lab/b0 -b lab/b1 -b lab/b2 $bursty
    if [ "$LINE" = 6.1 ]; then
      judge "bursty: p90 at -20 of that at 0" "$(ratio "${got[p90]}" "$base_p90")" '<=' 0.15
      judge "bursty: p99" "$(ratio "${got[p99]}" "$base_p99")" '<=' 0.15
      judge "bursty: maximum" "$(ratio "${got[max]}" "$base_max")" '<=' 1
    else
      judge "bursty: average at -20 of that at 0" "$(ratio "${got[avg]}" "$base_avg")" '<=' 0.10
    fi
    feature NO_LATENCY_NICE
    label="-20, switched off" lab latency -c "$cpu" -g lab/a -b lab/b0 -b lab/b1 -b lab/b2 $bursty
    feature LATENCY_NICE
  }
  ungroup lab
}

# The same nested in two slices that have no value of their own, and the slice that has one.
row_nested() {
  local cpu base_avg
  cpu=$(last_cpu)
  groups lab/one/a lab/one/b0 lab/two/b1 lab/two/b2
  # shellcheck disable=SC2086
  {
    label="0" lab latency -c "$cpu" -g lab/one/a -b lab/one/b0 -b lab/two/b1 -b lab/two/b2 $bursty
    base_avg=${got[avg]}
    put -20 lab/one/a cpu.latency.nice
    label="-20" lab latency -c "$cpu" -g lab/one/a -b lab/one/b0 -b lab/two/b1 -b lab/two/b2 $bursty
    if [ "$LINE" = 6.1 ]; then
      judge "nested: average at -20 is less than at 0" "$(ratio "${got[avg]}" "$base_avg")" '<' 1
    else
      judge "nested: average at -20 of that at 0" "$(ratio "${got[avg]}" "$base_avg")" '<=' 0.30
    fi
    # A task in one slice, the loads in the other: only the value that travels up can help.
    ungroup lab
    groups lab/one/a lab/two/b0 lab/two/b1 lab/two/b2
    label="across, 0" lab latency -c "$cpu" -g lab/one/a -b lab/two/b0 -b lab/two/b1 -b lab/two/b2 -r 2500 -s 2500 -R 8000 -S 8000 -t 6
    base_avg=${got[avg]}
    put -20 lab/one/a cpu.latency.nice
    label="across, -20" lab latency -c "$cpu" -g lab/one/a -b lab/two/b0 -b lab/two/b1 -b lab/two/b2 -r 2500 -s 2500 -R 8000 -S 8000 -t 6
    judge "across slices: a value travels up" "$(ratio "${got[avg]}" "$base_avg")" '<=' 0.5
    put 1 lab/one cpu.latency.nice
    label="across, slice at 1" lab latency -c "$cpu" -g lab/one/a -b lab/two/b0 -b lab/two/b1 -b lab/two/b2 -r 2500 -s 2500 -R 8000 -S 8000 -t 6
    judge "across slices: a slice with a value of its own keeps it" "$(ratio "${got[avg]}" "$base_avg")" '>=' 0.7
  }
  ungroup lab
}

# Shares of CPU time stay, and nobody gets less done.
row_shares() {
  local cpu nice other group base=() base_cycles base_cpu i worst d
  cpu=$(last_cpu)
  groups lab/a lab/b0 lab/b1 lab/b2 lab/b3
  label="all at 0" lab share -c "$cpu" -t 5 lab/a lab/b0 lab/b1 lab/b2
  for group in lab/a lab/b0 lab/b1 lab/b2; do base+=("${got[$group]}"); done
  for nice in -20 -5 5 19; do
    for other in 0 19 -20; do
      [ "$nice" != "$other" ] || continue
      put "$nice" lab/a cpu.latency.nice
      for group in lab/b0 lab/b1 lab/b2; do put "$other" "$group" cpu.latency.nice; done
      label="$nice, others $other" lab share -c "$cpu" -t 3 lab/a lab/b0 lab/b1 lab/b2
      i=0 worst=0
      for group in lab/a lab/b0 lab/b1 lab/b2; do
        d=$(calc "${got[$group]:-100} - ${base[i]}")
        worst=$(awk "BEGIN { d = $d < 0 ? -($d) : $d; print d > $worst ? d : $worst }")
        i=$((i + 1))
      done
      judge "shares: $nice among $other, points off" "$worst" '<=' 3
    done
  done
  for group in lab/a lab/b0 lab/b1 lab/b2; do put 0 "$group" cpu.latency.nice; done
  # shellcheck disable=SC2086
  {
    label="periodic at 0, hogs at 0" lab latency -c "$cpu" -g lab/a $hogs -r 300 -s 5000 -t 5
    base_cycles=${got[cycles]} base_cpu=${got[cpu]}
    for nice in -20 0 19; do
      for other in 0 -20 19; do
        [ "$nice,$other" != 0,0 ] || continue
        put "$nice" lab/a cpu.latency.nice
        for group in lab/b0 lab/b1 lab/b2 lab/b3; do put "$other" "$group" cpu.latency.nice; done
        label="periodic at $nice, hogs at $other" lab latency -c "$cpu" -g lab/a $hogs -r 300 -s 5000 -t 5
        judge "cycles: periodic at $nice, hogs at $other, points of CPU lost" "$(calc "$base_cpu - ${got[cpu]:-0}")" '<=' 3
        if [ "$nice" != 19 ]; then
          judge "cycles: periodic at $nice, hogs at $other, of those at 0" "$(ratio "${got[cycles]}" "$base_cycles")" '>=' 0.97
        fi
      done
    done
  }
  ungroup lab
}
