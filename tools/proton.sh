# Sourced. `alone COMMAND...`: a build in which pkg-config finds nothing.
# Proton takes in OpenSSL and Cyrus SASL where pkg-config finds them, and its client then chooses other mechanisms. amqpmesh
# uses neither, and what is built must not depend on what lies about on the machine.

alone() (
    unset PKG_CONFIG_PATH
    export PKG_CONFIG_LIBDIR=/nonexistent
    "$@"
)
