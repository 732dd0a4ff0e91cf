# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for cpuclassctl(1). Names come live from the daemon; without one only verbs, options and files complete.
#
# The line is split here at blanks, not taken from COMP_WORDS: readline also breaks at "@" and ":", which unit names and pod:UID are full of.

# Offers the lines of standard input, quoted for the shell; what readline has broken off in front is left out.
__cpuclassctl_offer() {
        local word quoted
        while IFS= read -r word; do
                printf -v quoted %q "$word"
                COMPREPLY+=("${quoted#"$strip"}")
        done
}

__cpuclassctl_ask() {
        __cpuclassctl_offer < <(cpuclassctl "${sockets[@]}" complete "$@" 2>/dev/null)
}

__cpuclassctl_words() {
        __cpuclassctl_offer < <(compgen -W "$1" -- "$raw")
}

__cpuclassctl_files() {
        compopt -o filenames 2>/dev/null
        __cpuclassctl_offer < <(compgen "$1" -- "$raw")
}

# Units that systemd has files for: an assignment may come before its unit runs. Templates themselves run never.
__cpuclassctl_unit_files() {
        systemctl list-unit-files --no-legend --no-pager --type=service,slice,scope 2>/dev/null |
                while read -r unit _; do [[ $unit == "$raw"* && $unit != *@.* ]] && printf '%s\n' "$unit"; done
}

_cpuclassctl() {
        local line=${COMP_LINE:0:COMP_POINT} words=() sockets=() cur prev raw strip='' broken verb='' unit i n=0
        COMPREPLY=()
        read -ra words <<<"$line"
        [[ $line == *[[:blank:]] ]] && words+=('')
        cur=${words[-1]}
        prev=${words[-2]}
        if [[ $cur == --*=* ]]; then
                prev=${cur%%=*}
                cur=${cur#*=}
        fi
        broken=${cur##*[:@=]}
        [[ $COMP_WORDBREAKS == *[:@=]* ]] && strip=${cur%"$broken"}
        # readline keeps an "@" with the word that it begins
        strip=${strip%@}
        # what is meant, without the backslashes of the shell
        raw=$(sed 's/\\\(.\)/\1/g' <<<"$cur")

        for ((i = 1; i < ${#words[@]} - 1; i++)); do
                case ${words[i]} in
                --socket) sockets=(--socket "${words[++i]}") ;;
                --class|--group|--sort|--state|--filter|--owner|--for|--delay|--period|--since|--quota|--burst|--floor|--ceiling|--latency-nice|--pool|--unit|--iterations|-d) ((i++)) ;;
                -n) [[ $verb == assign || $verb == unassign ]] || ((i++)) ;;
                -*) ;;
                *) if [[ -z $verb ]]; then verb=${words[i]}; else ((n++)); fi ;;
                esac
        done

        case $prev in
        --socket) __cpuclassctl_files -f; return ;;
        --class) __cpuclassctl_ask classes "$raw"; return ;;
        --group) __cpuclassctl_ask groups "$raw"; return ;;
        --sort) __cpuclassctl_words 'cpu throttled pressure quota class name age'; return ;;
        --state) __cpuclassctl_words 'applied degraded pending held refused failed paused dry_run unmanaged'; return ;;
        --filter|--owner|--for|--delay|--period|--since|--quota|--burst|--floor|--ceiling|--latency-nice|--pool|--unit|--iterations|-d) return ;;
        -n) [[ $verb == assign || $verb == unassign ]] || return ;;
        esac

        if [[ -z $verb ]]; then
                if [[ $cur == -* ]]; then __cpuclassctl_words '--help --json --socket --version'; else __cpuclassctl_ask verbs "$raw"; fi
                return
        fi
        if [[ $cur == -* && ! ( $verb == run && $n -gt 0 ) ]]; then
                __cpuclassctl_ask options "$verb" "$raw"
                return
        fi
        case $verb:$n in
        show:0|explain:0|pause:0|resume:0) __cpuclassctl_ask groups "$raw" ;;
        classes:0|assign:1) __cpuclassctl_ask classes "$raw" ;;
        unassign:0) __cpuclassctl_ask assigned "$raw" ;;
        assign:0)
                # a unit that runs is in both lists
                __cpuclassctl_offer < <({
                        cpuclassctl "${sockets[@]}" complete groups "$raw" 2>/dev/null
                        [[ $raw == /* ]] || __cpuclassctl_unit_files
                } | sort -u) ;;
        policy:0) __cpuclassctl_words 'check reload show' ;;
        policy:*) __cpuclassctl_files -f ;;
        run:0) __cpuclassctl_files -c ;;
        run:*) __cpuclassctl_files -f ;;
        help:0) __cpuclassctl_ask verbs "$raw" ;;
        esac
}
complete -F _cpuclassctl cpuclassctl
