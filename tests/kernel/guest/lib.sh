# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# What the rows share. Sourced by guest/rows, in the guest, as root.
#
# A row measures with the lab tool and judges ratios. Each verdict is one line, "PASS what" or "FAIL what", with the
# figures and the mark in it; the lines of the tool itself are shown as they come, indented.

cgroup=/sys/fs/cgroup
features=/sys/kernel/debug/sched/features
failures=0

# The values of the last measurement, by key: ${got[avg]}
declare -A got

# lab VERB ARG...: run the tool, show its line, and take its values.
lab() {
  local line word
  line=$("$LAB" "$@") || { echo "FAIL lab $*: the tool failed"; failures=$((failures + 1)); line=; }
  got=()
  for word in $line; do got[${word%%=*}]=${word#*=}; done
  printf '  %s\n' "${label:-$1}: $line"
}

# calc EXPRESSION: awk's arithmetic, four digits.
calc() { awk "BEGIN { printf \"%.4f\", ($1) }"; }

# judge WHAT VALUE OP MARK
judge() {
  local verdict=FAIL
  [ -n "$2" ] && awk "BEGIN { exit !($2 $3 $4) }" && verdict=PASS
  [ $verdict = PASS ] || failures=$((failures + 1))
  echo "$verdict $1: $2 (mark: $3 $4)"
}

# ratio A B: A/B, or nothing where one of them is missing
ratio() { [ -z "$1" ] || [ -z "$2" ] || calc "$1 / $2"; }

verdict() { # WHAT CODE
  if [ "$2" = 0 ]; then echo "PASS $1"; else echo "FAIL $1"; failures=$((failures + 1)); fi
}

# groups PATH...: make them, with the cpu controller on all the way down.
groups() {
  local path part so_far
  for path; do
    so_far=$cgroup
    for part in ${path//\// }; do
      grep -qw cpu "$so_far/cgroup.subtree_control" || echo +cpu >"$so_far/cgroup.subtree_control"
      so_far+=/$part
      [ -d "$so_far" ] || mkdir "$so_far"
    done
  done
}

# ungroup TOP: remove it and all below.
ungroup() {
  local try
  for try in 1 2 3 4 5 6 7 8 9 10; do
    find "$cgroup/$1" -depth -type d -exec rmdir {} + 2>/dev/null
    [ -d "$cgroup/$1" ] || return 0
    sleep 0.2
  done
  echo "FAIL cannot remove $1 (try $try)"
  failures=$((failures + 1))
}

# put VALUE GROUP FILE: write, and read back.
put() {
  echo "$1" >"$cgroup/$2/$3" && [ "$(cat "$cgroup/$2/$3")" = "$1" ] ||
    { echo "FAIL $2/$3: $1 was written, $(cat "$cgroup/$2/$3" 2>/dev/null) reads back"; failures=$((failures + 1)); }
}

feature() { echo "$1" >"$features" || { echo "FAIL no feature $1"; failures=$((failures + 1)); }; }

median() { printf '%s\n' "$@" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
