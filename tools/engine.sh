#!/usr/bin/env bash
# Runs a command beside a Docker Engine that only this command can reach: tools/engine.sh COMMAND...
# Command and engine run in namespaces of their own for processes, mounts and network. When the command ends, or this script
# is killed, the kernel ends all processes inside; no network, firewall rule or sysctl of the machine is changed.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/packages.sh

readonly START_S=30 WORDS=("$@")
readonly PREFIX=/tmp/amqpmesh-engine

install_engine() {
    local -a missing=()
    command -v dockerd >/dev/null || missing+=(docker.io)
    command -v iptables >/dev/null || missing+=(iptables)
    command -v ip >/dev/null || missing+=(iproute2)
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

# Inside of the namespaces.
run_beside_engine() { # arguments: the engine's folder, then the command
    local -r folder=$1 engine_folders=(--data-root "$1/data" --exec-root "$1/run" --pidfile "$1/pid")
    shift
    export DOCKER_HOST=unix://$folder/socket
    ip link set lo up
    # The engine keeps a key and plugins in these two folders, wherever its other files are.
    mkdir -p /etc/docker /run/docker
    mount -t tmpfs none /etc/docker
    mount -t tmpfs none /run/docker
    dockerd --host "$DOCKER_HOST" "${engine_folders[@]}" --bridge none \
        --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/${folder##*/}" &>"$folder/log" &
    local -r engine=$!
    local status=0
    { wait_for_socket "$folder/socket" "$engine" && "$@"; } || status=$?
    # The command saw only that the engine did not answer, so the engine's log is printed if the engine has ended.
    kill "$engine" 2>/dev/null || cat "$folder/log" >&2
    wait "$engine" || true
    return "$status"
}

wait_for_socket() { # arguments: the socket, and the id of the process that makes the socket
    local -r deadline=$((SECONDS + START_S))
    until [[ -S $1 ]]; do
        kill -0 "$2" 2>/dev/null && ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

# Outside of the namespaces.
end_inside() {
    [[ -z ${inside-} ]] || { kill -KILL "$inside"; wait "$inside"; } 2>/dev/null || true
}

clean_up() { # argument: the folder of an engine whose processes have ended
    find /sys/fs/cgroup -depth -type d -path "*/${1##*/}*" -exec rmdir {} + 2>/dev/null || true
    rm -rf "$1"
}

clean_up_after_the_dead() {
    local folder
    for folder in "$PREFIX".*; do
        [[ -d $folder && ! -d /proc/${folder##*.} ]] && clean_up "$folder"
    done
    return 0
}

if [[ ${1-} == --inside ]]; then
    run_beside_engine "${WORDS[@]:1}"
    exit
fi
((EUID == 0)) || { echo 'tools/engine.sh: only root may start a Docker Engine' >&2; exit 1; }
install_engine
clean_up_after_the_dead
folder=$PREFIX.$$
mkdir -m 700 "$folder"
trap 'end_inside; clean_up "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
# If this shell is killed, setpriv's signal ends the first process inside, and the kernel then ends all others.
setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc \
    bash "$0" --inside "$folder" "${WORDS[@]}" &
inside=$!
status=0
wait "$inside" || status=$?
inside=
exit "$status"
