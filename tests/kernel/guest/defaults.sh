# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# What must cost nothing: run on the unpatched and on the patched kernel, at defaults and switched off, and compared
# by the runner. Only "  key: line" goes out, no verdict. Counts instructions.

row_defaults() {
  local groups_ kind
  label="ping-pong on a CPU" lab pingpong -n 4000 -c 0
  [ "$(nproc)" = 1 ] || label="ping-pong" lab pingpong -n 4000
  for groups_ in 1 2 4 8 16 32; do
    [ "$(nproc)" -gt 1 ] || [ "$groups_" -le 8 ] || continue
    label="schbench $groups_" lab schbench -m "$groups_" -w 4 -r 1000 -t 2
  done
  for kind in process thread pipe; do
    for groups_ in 10 30 60; do
      printf '  hackbench %s %s: time=%s\n' "$kind" "$groups_" "$(hackbench $(hack "$kind") -g "$groups_" -l 4 | awk '/^Time/ { print $2 }')"
    done
  done
}

hack() {
  case $1 in
  process) echo --process ;;
  thread) echo --threads ;;
  pipe) echo --pipe ;;
  esac
}
