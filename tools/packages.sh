# Sourced. `install_packages NAME...` installs Debian or Ubuntu packages with apt-get; a user who may not do so is shown the
# command, and the function fails.

install_packages() {
    local -a sudo=()
    ((EUID == 0)) || sudo=(sudo -n)
    if ! command -v apt-get >/dev/null || ! "${sudo[@]}" true 2>/dev/null; then
        echo "This needs packages that only an administrator can install. Run this line, then try again:" >&2
        echo "    sudo apt-get install --yes $*" >&2
        return 1
    fi
    echo "Installing with apt-get: $*"
    "${sudo[@]}" apt-get update -qq
    # RUNLEVEL=1: a package with a service must not start the service, because the tests start their own.
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install --yes --no-install-recommends -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null
}
