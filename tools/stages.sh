#!/usr/bin/env bash
# Runs commands one after the other, each whatever became of those before it, and says at the end how each of them ended.
# As a script: tools/stages.sh COMMAND... (each an argument, for bash). Sourced: `stage COMMAND WORD...`, then `tell_stages`.
# The exit code is 1 if any of them failed. Ctrl-C ends the whole.

stages_told=()
stages_failed=0
trap 'exit 130' INT

stage() { # a command and its words
    local -r began=$SECONDS
    local status=0 what
    printf '\n### %s\n' "$*"
    "$@" || status=$?
    what=ok
    if ((status)); then
        what="FAILED ($status)"
        stages_failed=1
    fi
    stages_told+=("$(printf '%-12s %5d s  %s' "$what" $((SECONDS - began)) "$*")")
    return "$status"
}

tell_stages() { # false when any failed
    printf '\n### all stages\n'
    printf '%s\n' "${stages_told[@]}"
    return "$stages_failed"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    for command in "$@"; do
        # shellcheck disable=SC2086 # a command is words
        eval "stage $command" || true
    done
    tell_stages
fi
