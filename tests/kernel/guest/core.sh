# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# Core scheduling: cpu.core_tag in all that can happen to a group, and the core-wide pick. Ordinary mode.

siblings() { # the CPUs of the first core, one a line
  tr ',-' '\n\n' </sys/devices/system/cpu/cpu0/topology/thread_siblings_list | awk '
    NR == 1 { a = $1 } { last = $1; n++ }
    END { getline list < "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"
          if (list ~ /-/) for (i = a; i <= last; i++) print i; else { n = split(list, c, ","); for (i = 1; i <= n; i++) print c[i] } }'
}

best_sum() { # MIN|MAX TRIES CPU:GROUP...: the best of a few, as an emulated guest is not alone on its host
  local which=$1 tries=$2 best='' i
  shift 2
  for ((i = 0; i < tries; i++)); do
    lab core -t 2 "$@"
    [ -n "$best" ] || best=${got[sum]}
    best=$(awk "BEGIN { print (${got[sum]} $([ "$which" = MIN ] && echo '<' || echo '>') $best) ? ${got[sum]} : $best }")
  done
  sum=$best
}

row_tag() {
  local cpu0 cpu1 rest sum
  read -r cpu0 cpu1 rest <<<"$(siblings | tr '\n' ' ')"
  sysctl -qw kernel.sched_schedstats=1
  groups lab/a lab/b lab/u lab/p/c lab/p/d
  label=untagged best_sum MAX 2 "$cpu0:lab/a" "$cpu1:lab/b"
  judge "tag: untagged, sum of CPU" "$sum" '>=' 1.8
  put 1 lab/a cpu.core_tag
  put 1 lab/b cpu.core_tag
  label="tags differ" best_sum MIN 2 "$cpu0:lab/a" "$cpu1:lab/b"
  judge "tag: tags differ, sum of CPU" "$sum" '<=' 1.1
  judge "tag: ... forced idle is accounted" "${got[forced]}" '>=' 0.7
  judge "tag: ... seen together" "${got[together]}" '<=' 0.05
  label="one tag" best_sum MAX 2 "$cpu0:lab/a" "$cpu1:lab/a"
  judge "tag: one tag, sum of CPU" "$sum" '>=' 1.8
  label="a tagged, other not" lab core -t 2 "$cpu0:lab/a" "$cpu1:lab/u"
  judge "tag: against the untagged, sum of CPU" "${got[sum]}" '<=' 1.1
  put 1 lab/p cpu.core_tag
  label="below one tag" best_sum MAX 2 "$cpu0:lab/p/c" "$cpu1:lab/p/d"
  judge "tag: descendants share their ancestor's" "$sum" '>=' 1.8
  put 1 lab/p/c cpu.core_tag
  label="one has its own" best_sum MIN 2 "$cpu0:lab/p/c" "$cpu1:lab/p/d"
  judge "tag: a descendant with a tag of its own" "$sum" '<=' 1.1
  put 0 lab/p/c cpu.core_tag
  label="given back" best_sum MAX 2 "$cpu0:lab/p/c" "$cpu1:lab/p/d"
  judge "tag: ... that gives it back" "$sum" '>=' 1.8

  feature NO_CORE_TAG
  label="switched off" best_sum MAX 2 "$cpu0:lab/a" "$cpu1:lab/b"
  judge "tag: switched off, sum of CPU" "$sum" '>=' 1.8
  feature CORE_TAG
  label="switched on" best_sum MIN 2 "$cpu0:lab/a" "$cpu1:lab/b"
  judge "tag: switched on again" "$sum" '<=' 1.1
  put 0 lab/a cpu.core_tag
  put 0 lab/b cpu.core_tag
  label="untagged again" best_sum MAX 2 "$cpu0:lab/a" "$cpu1:lab/b"
  judge "tag: untagged again, sum of CPU" "$sum" '>=' 1.8
  ungroup lab
}

row_tag_cookies() {
  groups lab/a lab/b lab/p/c
  "$LAB" cookies lab/a lab/b lab/p lab/p/c
  verdict "tag: cookies on attach, fork, clone, write, removal; precedence over prctl" $?
  ungroup lab
}

row_tag_abi() {
  local bad
  groups lab/a
  for bad in 2 -1 x ''; do
    if echo "$bad" >"$cgroup/lab/a/cpu.core_tag" 2>/dev/null; then verdict "tag: '$bad' is refused" 1; fi
  done
  [ "$(cat $cgroup/lab/a/cpu.core_tag)" = 0 ]
  verdict "tag: bad values change nothing" $?
  ! [ -e $cgroup/cpu.core_tag ]
  verdict "tag: none on the root" $?
  ungroup lab
}

# Without SMT there is nothing to tag.
row_no_smt() {
  groups lab/a
  (echo 1 >$cgroup/lab/a/cpu.core_tag) 2>/dev/null
  verdict "tag: refused without SMT siblings" $((! $?))
  echo 0 >$cgroup/lab/a/cpu.core_tag
  verdict "tag: 0 always works" $?
  ungroup lab
}

# Four threads a core: two tags take turns, two threads each; four tags run one at a time.
row_smt4() {
  local c sum
  mapfile -t c < <(siblings)
  [ ${#c[@]} = 4 ]
  verdict "smt4: four siblings" $?
  sysctl -qw kernel.sched_schedstats=1
  groups lab/a lab/b lab/c lab/d
  label=untagged best_sum MAX 2 "${c[0]}:lab/a" "${c[1]}:lab/b" "${c[2]}:lab/c" "${c[3]}:lab/d"
  judge "smt4: untagged, sum of CPU" "$sum" '>=' 3.6
  for g in a b c d; do put 1 lab/$g cpu.core_tag; done
  label="four tags" best_sum MIN 2 "${c[0]}:lab/a" "${c[1]}:lab/b" "${c[2]}:lab/c" "${c[3]}:lab/d"
  judge "smt4: four tags, sum of CPU" "$sum" '<=' 1.1
  label="two tags" best_sum MIN 2 "${c[0]}:lab/a" "${c[1]}:lab/a" "${c[2]}:lab/b" "${c[3]}:lab/b"
  judge "smt4: two tags of two, sum of CPU" "$sum" '<=' 2.2
  judge "smt4: ... forced idle is accounted" "${got[forced]}" '>=' 1
  label="one tag" best_sum MAX 2 "${c[0]}:lab/a" "${c[1]}:lab/a" "${c[2]}:lab/a" "${c[3]}:lab/a"
  judge "smt4: one tag, sum of CPU" "$sum" '>=' 3.6
  ungroup lab
}

# A tagged task that sleeps and runs, on one sibling, against a tagged hog on the other.
row_core_latency() {
  local cpu0 cpu1 rest base ratios=() base_hog hogs=() i hog before
  read -r cpu0 cpu1 rest <<<"$(siblings | tr '\n' ' ')"
  groups lab/a lab/b
  put 1 lab/a cpu.core_tag
  put 1 lab/b cpu.core_tag
  "$LAB" hog -c "$cpu1" -g lab/b &
  hog=$!
  one() {
    before=$(awk '$1 == "usage_usec" { print $2 }' $cgroup/lab/b/cpu.stat)
    lab latency -c "$cpu0" -g lab/a -b lab/a -r 2000 -s 5000 -t 3
    # the hog's part of the time that both wanted
    hogs+=("$(calc "($(awk '$1 == "usage_usec" { print $2 }' $cgroup/lab/b/cpu.stat) - $before) / 3200000")")
  }
  for i in 1 2 3; do
    put 0 lab/a cpu.latency.nice
    label="0" one
    base=${got[avg]} base_hog=${hogs[-1]}
    put -20 lab/a cpu.latency.nice
    label="-20" one
    ratios+=("$(ratio "${got[avg]}" "$base")")
  done
  judge "core pick: average at -20 of that at 0, median of three" "$(median "${ratios[@]}")" '<' 0.9
  judge "core pick: the forced-idle sibling keeps its share" "$(ratio "${hogs[-1]}" "$base_hog")" '>=' 0.94
  feature NO_CORE_LATENCY_NICE
  label="-20, switched off" one
  feature CORE_LATENCY_NICE
  kill $hog
  wait $hog 2>/dev/null
  ungroup lab
}
