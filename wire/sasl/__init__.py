"""The SASL layer of a connection, sans-IO, both sides: ANONYMOUS, PLAIN, EXTERNAL and SCRAM-SHA-256."""

from wire.sasl.authenticator import Authenticator, PasswordCheck
from wire.sasl.client import SaslClient, SaslClientSettings
from wire.sasl.server import SaslServer, SaslServerSettings
from wire.sasl.verdict import Accepted, Refused, Verdict

__all__ = [
    "Accepted",
    "Authenticator",
    "PasswordCheck",
    "Refused",
    "SaslClient",
    "SaslClientSettings",
    "SaslServer",
    "SaslServerSettings",
    "Verdict",
]
