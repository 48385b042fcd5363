"""The SASL layer of a connection, sans-IO, both sides: ANONYMOUS, PLAIN, EXTERNAL and SCRAM-SHA-256."""

from wire.sasl.authenticator import Authenticator, PasswordCheck
from wire.sasl.client import SaslClient, SaslClientSettings
from wire.sasl.server import SaslServer, SaslServerSettings
from wire.sasl.verdict import SaslAccepted, SaslRefused, Verdict

__all__ = [
    "Authenticator",
    "PasswordCheck",
    "SaslAccepted",
    "SaslClient",
    "SaslClientSettings",
    "SaslRefused",
    "SaslServer",
    "SaslServerSettings",
    "Verdict",
]
