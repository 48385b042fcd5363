#!/usr/bin/env bash
# Installs the Debian packages of the programs that tests talk to: other projects' brokers and clients, a browser, and
# Prometheus, whose promtool checks metrics and alerts; and nginx, behind which the console can be.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/packages.sh

missing=()
need() { # arguments: a package, then a command that succeeds if the package is not needed
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

need rabbitmq-server test -x /usr/lib/rabbitmq/bin/rabbitmq-server
need libqpid-proton11-dev test -e /usr/include/proton/proactor.h
need libqpid-proton-cpp12-dev test -e /usr/include/proton/container.hpp
need libqpid-proton11-dev-examples test -d /usr/share/proton/examples/cpp
need g++ command -v c++
need pkg-config command -v pkg-config
need nodejs command -v node
need npm command -v npm
need default-jdk-headless command -v javac
need maven command -v mvn
need python3-venv python3 -c 'import ensurepip'
need chromium command -v chromium
need prometheus command -v promtool
need nginx-light test -x /usr/sbin/nginx
if ((${#missing[@]})); then
    install_packages "${missing[@]}"
fi
