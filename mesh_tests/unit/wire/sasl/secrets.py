"""Users with real secrets, made with the fewest iterations that SCRAM allows."""

from addressing.topology.credentials import MIN_ITERATIONS, Secret, make_secret, parse_secret
from wire.sasl import Authenticator


def secret(password: str) -> Secret:
    return parse_secret(make_secret(password, iterations=MIN_ITERATIONS))


USERS = Authenticator({"alice": secret("wonder"), "bob": secret("builder")})
