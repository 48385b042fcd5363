#!/usr/bin/env bash
# Runs commands one after the other, even if an earlier command fails, and prints at the end how each command ended.
# As a script: tools/stages.sh COMMAND... (each an argument, for bash). Sourced: `stage COMMAND WORD...`, then `tell_stages`.
# The exit code is 1 if any command failed. Ctrl-C ends the whole run.
# mesh_tests/conftest.py writes the tests that failed to the file $AMQPMESH_FAILED_TESTS, and the outermost run prints them last:
# a reader of a long log sees them without a search.

stages_told=()
stages_failed=0
trap 'exit 130' INT
stages_failed_tests=
if [[ -z ${AMQPMESH_FAILED_TESTS:-} ]]; then
    stages_failed_tests=$(mktemp)
    export AMQPMESH_FAILED_TESTS=$stages_failed_tests
    trap 'rm -f "$stages_failed_tests"' EXIT
fi

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
    if [[ -s $stages_failed_tests ]]; then
        printf '\n### all tests that failed\n'
        cat "$stages_failed_tests"
    fi
    return "$stages_failed"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    for command in "$@"; do
        # shellcheck disable=SC2086 # a command is words
        eval "stage $command" || true
    done
    tell_stages
fi
