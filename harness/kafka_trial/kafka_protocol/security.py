"""How a connection is secured: TLS around its socket, and whom SASL says we are (KIP-152, 368).

`Security` is made by whoever reads a client's properties file. A connection calls `secured` on its bare socket, and
`authenticate` on what comes of it. What a wrong setting causes is wrong input and told at once, with the place and the
remedy: asking again, or another broker, would change nothing, and tries with a wrong password lock accounts.

PLAIN is RFC 4616. The arithmetic of SCRAM (RFC 5802, RFC 7677) is kafka-python's; here stands what it leaves out:
names with `=` and `,`, and the fewest iterations Kafka lets a server ask for (with fewer, passwords are guessed). The
server's signature is verified: who cannot prove to know the password is not the broker.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kafka_trial.errors import InputError
from kafka_trial.kafka_protocol.primitives import Reader, error_name

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


MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS_MIN: Final = 4096
_HANDSHAKE: Final = (17, 1)
_AUTHENTICATE: Final = (36, 1)
_NO_SUCH_MECHANISM: Final = 33
_ITERATIONS: Final = re.compile(rb"(?:^|,)i=(\d{1,9})(?:,|$)")


class Ask(Protocol):
    """A connection's `ask`."""

    def __call__(self, api: tuple[int, int], body: bytes, read: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What a broker says to one message; `lifetime_ms` is how long it takes requests then, 0 for ever."""

    code: int
    message: str | None
    data: bytes
    lifetime_ms: int


def authenticate(ask: Ask, name: str, security: Security) -> float | None:
    """Says who we are to the broker of host and port `name`; returns for how many seconds that holds, None for ever.

    Raises:
        InputError: the broker takes no such mechanism, no such password, or is not who knows it.
        NoAnswerError: no answer.
    """
    credentials = security.credentials
    if credentials is None:
        return None
    mechanism = credentials.mechanism.encode()
    code, enabled = ask(_HANDSHAKE, struct.pack(f">h{len(mechanism)}s", len(mechanism), mechanism), _handshake)
    if code:
        raise InputError(name, _refused_mechanism(code, enabled, security))
    exchange = messages(credentials.mechanism, credentials.user, credentials.password)
    message = next(exchange)
    while True:
        answer: Answer = ask(_AUTHENTICATE, struct.pack(f">i{len(message)}s", len(message), message), _answer)
        if answer.code:
            raise InputError(name, _refused(answer, security))
        try:
            message = exchange.send(answer.data)
        except StopIteration:
            return answer.lifetime_ms / 1000 if answer.lifetime_ms > 0 else None
        except ValueError as error:
            raise InputError(
                name, f"does not prove that it knows the password of {credentials.user} ({error}): is it the broker?"
            ) from error


def messages(mechanism: str, user: str, password: str, *, nonce: str | None = None) -> Generator[bytes, bytes, None]:
    """Yields what a client of the mechanism says; is sent what the server answers. `nonce` is drawn unless given.

    Raises:
        ValueError: the server's answer is none, or it does not know the password.
    """
    if mechanism == "PLAIN":
        yield f"\0{user}\0{password}".encode()
        return
    from kafka.net.sasl.scram import ScramClient

    client = ScramClient(user.replace("=", "=3D").replace(",", "=2C"), password, mechanism)
    if nonce is not None:
        client.nonce = nonce.encode()
    first = yield client.first_message()
    _check_iterations(first)
    try:
        client.process_server_first_message(first)
        final = yield client.final_message()
        client.process_server_final_message(final)
    except KeyError as error:
        raise ValueError(f"it left out {error} in its answer") from error


def _check_iterations(first: bytes) -> None:
    told = _ITERATIONS.search(first)
    if told is None or int(told[1]) < ITERATIONS_MIN:
        raise ValueError(f"it asks for fewer than {ITERATIONS_MIN} iterations, or for no number of them")


def _refused_mechanism(code: int, enabled: tuple[str, ...], security: Security) -> str:
    assert security.credentials is not None
    if code == _NO_SUCH_MECHANISM:
        return (
            f"its listener has no {security.credentials.mechanism}, but {', '.join(enabled) or 'no mechanism'}: set "
            f"sasl.mechanism in {security.config} to one of these and of {', '.join(MECHANISMS)}"
        )
    plain = security.protocol.removeprefix("SASL_")
    return (
        f"its listener does not speak SASL ({error_name(code)}): security.protocol must be {plain} in {security.config}"
    )


def _refused(answer: Answer, security: Security) -> str:
    assert security.credentials is not None
    said = f": {answer.message}" if answer.message else ""
    return (
        f"does not take user {security.credentials.user} with that password ({error_name(answer.code)}{said}): check "
        f"username and password in sasl.jaas.config of {security.config}, and that the user has credentials for "
        f"{security.credentials.mechanism}"
    )


def _handshake(reader: Reader) -> tuple[int, tuple[str, ...]]:
    return reader.int16(), reader.array(reader.string)


def _answer(reader: Reader) -> Answer:
    return Answer(reader.int16(), reader.nullable_string(), reader.blob(), reader.int64())
