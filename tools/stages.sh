#!/usr/bin/env bash
# Runs commands one after the other, even if an earlier command fails, and prints at the end how each command ended.
# As a script: tools/stages.sh COMMAND... (each an argument, for bash). Sourced: `stage COMMAND WORD...`, then `tell_stages`.
# The exit code is 1 if any command failed. Ctrl-C ends the whole run.

stages_told=()
stages_failed=0
trap 'exit 130' INT

stage() { # arguments: a command with its arguments
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

tell_stages() { # prints all stages with their times; returns false if any failed
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
