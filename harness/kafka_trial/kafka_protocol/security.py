"""How a connection is secured: TLS around its socket, and whom SASL says we are.

Made by whoever reads a client's properties file. A connection calls `secured` on its bare socket, and `sasl.py` on
what comes of it. What a wrong setting causes is wrong input and told at once, with the place and the remedy: asking
again, or another broker, would change nothing, and tries with a wrong password lock accounts.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from typing import Final

from kafka_trial.errors import InputError

_OTHER_NAME: Final = (62, 64)  # OpenSSL's codes for a certificate of another host name, or address
_OF_OUR_CERTIFICATE: Final = ("CERTIFICATE", "UNKNOWN_CA")
_TLS_RECORDS: Final = range(0x14, 0x18)


@dataclass(frozen=True)
class Credentials:
    """Whom we say we are; the password is in no text that is made of this."""

    mechanism: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Security:
    """What a listener asks of its clients; `config` is the file it was read from, for errors."""

    tls: ssl.SSLContext | None = field(default=None, repr=False)
    credentials: Credentials | None = None
    config: str = ""

    @property
    def protocol(self) -> str:
        """Kafka's name of it."""
        transport = "PLAINTEXT" if self.tls is None else "SSL"
        return transport if self.credentials is None else f"SASL_{transport}"


UNSECURED: Final = Security()


def secured(bare: socket.socket, host: str, name: str, security: Security) -> socket.socket:
    """Returns a connected socket with TLS around it where that is asked for; closes it where that fails.

    Raises:
        InputError: the broker is not trusted, is another host, or does not take us; `name` is its host and port.
        OSError: nothing, or nothing certain, came back.
    """
    if security.tls is None:
        return bare
    try:
        return security.tls.wrap_socket(bare, server_hostname=host)
    except OSError as error:
        bare.close()
        refuse_tls(error, name, security)
        plain = security.protocol.replace("SSL", "PLAINTEXT")
        raise ConnectionError(
            f"no TLS handshake came about ({_said(error)}): if that is a plaintext listener, security.protocol must be "
            f"{plain} in {security.config}"
        ) from error


def refuse_tls(error: Exception, name: str, security: Security) -> None:
    """Raises InputError where a TLS error is the fault of a setting; returns where it may be anything."""
    if not isinstance(error, ssl.SSLError) or (problem := _problem(error, security)) is None:
        return
    raise InputError(name, problem) from error


def speaks_tls(first: bytes) -> bool:
    """Tells whether the first four bytes of an answer are those of a TLS record; Kafka's are a length."""
    return first[0] in _TLS_RECORDS and first[1] == 3


def _problem(error: ssl.SSLError, security: Security) -> str | None:
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _distrust(error, security)
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        plain = security.protocol.replace("SSL", "PLAINTEXT")
        return f"does not answer in TLS: is it a plaintext listener? Then security.protocol is {plain}"
    if "ALERT" not in reason:
        return None
    if any(part in reason for part in _OF_OUR_CERTIFICATE):
        return (
            f"takes no client without a certificate that it trusts ({_said(error)}): set ssl.keystore.type=PEM and "
            f"ssl.keystore.location in {security.config} to a certificate that its truststore knows, and the key to it"
        )
    return f"and we have no TLS version or cipher in common ({_said(error)}); this client speaks TLS 1.2 and newer"


def _distrust(error: ssl.SSLCertVerificationError, security: Security) -> str:
    if error.verify_code in _OTHER_NAME:
        return (
            f"its certificate is another host's ({error.verify_message}): use the name that stands in it, in "
            "--bootstrap or advertised.listeners, or set ssl.endpoint.identification.algorithm= (nothing) in "
            f"{security.config}, which checks no name"
        )
    return (
        f"its certificate is not trusted ({error.verify_message}): put the certificate of whoever signed it into the "
        f"PEM file that ssl.truststore.location names in {security.config}"
    )


def _said(error: Exception) -> str:
    return (error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)) or type(error).__name__
