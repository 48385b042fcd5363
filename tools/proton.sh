# Sourced. `alone COMMAND...` runs a build in which pkg-config finds no library.
# Proton uses OpenSSL and Cyrus SASL if pkg-config finds these libraries, and proton's client then chooses other mechanisms.
# amqpmesh needs neither library, and the build must not depend on the libraries that a machine happens to have.

alone() (
    unset PKG_CONFIG_PATH
    export PKG_CONFIG_LIBDIR=/nonexistent
    "$@"
)
