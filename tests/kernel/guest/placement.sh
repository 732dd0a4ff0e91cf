# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash disable=SC2154
# Where children that sleep at once land. 8 CPUs, ordinary mode.

busiest() { # the median of five: children on the busiest CPU
  local i v=()
  for i in 1 2 3 4 5; do lab spread -n 64 -g 2000; v+=("${got[busiest]}"); done
  result=$(median "${v[@]}")
}

row_idlest() {
  local result
  label=IDLEST_UTIL busiest
  judge "idlest: busiest CPU of 8, 64 children, by utilization" "$result" '<' 35
  feature NO_IDLEST_UTIL
  label=NO_IDLEST_UTIL busiest
  judge "idlest: ... switched off" "$result" '>' 45
  feature IDLEST_UTIL
  feature IDLEST_UTIL_LOCAL
  label=IDLEST_UTIL_LOCAL busiest
  judge "idlest: ... local against idlest, too" "$result" '<' 18
  feature NO_IDLEST_UTIL_LOCAL
}
