"""Secured connections without a cluster: TLS that is not trusted, does not trust us, or is not there; SASL messages.

SASL: the published exchanges of RFC 5802 and RFC 7677, and servers that are not who they should be.
"""

from __future__ import annotations

import hashlib
import math
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest
from kafka.net.sasl.scram import ScramClient

from certificates import Certificates, certificates_in
from kafka_trial.audit.bounded_reading import Budget
from kafka_trial.audit.command_config import tls_context
from kafka_trial.audit.readers import read_records
from kafka_trial.audit.request import AuditRequest
from kafka_trial.errors import InputError
from kafka_trial.kafka_protocol.connection import Brokers, Connection, NoAnswerError
from kafka_trial.kafka_protocol.group_requests import coordinator
from kafka_trial.kafka_protocol.security import Credentials, Security, messages
from kafka_trial.process.threads import ThreadGroup
from kafka_trial.process.waiting import wait_until

# RFC 5802 §5 (SCRAM-SHA-1, which Kafka has not) and RFC 7677 §3, both: user "user", password "pencil".
RFC_5802 = (
    "SCRAM-SHA-1",
    "fyko+d2lbbFgONRv9qkxdawL",
    b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
RFC_7677 = (
    "SCRAM-SHA-256",
    "rOprNGfwEbeRWgbNEkqO",
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
NONCE, FIRST, LAST = RFC_7677[1], RFC_7677[3], RFC_7677[5]


@pytest.mark.parametrize("exchange", [RFC_5802, RFC_7677], ids=["RFC 5802", "RFC 7677"])
def test_scram_says_what_the_standards_examples_say(exchange: Sequence[str | bytes]) -> None:
    """Byte for byte; the server's signature is accepted, and ends it."""
    mechanism, nonce, *texts = exchange
    assert isinstance(mechanism, str)
    assert isinstance(nonce, str)
    with mock.patch.dict(ScramClient.MECHANISMS, {"SCRAM-SHA-1": hashlib.sha1}):
        talk = messages(mechanism, "user", "pencil", nonce=nonce)
        assert [next(talk), talk.send(texts[1])] == [texts[0], texts[2]]
        with pytest.raises(StopIteration):
            talk.send(texts[3])


@pytest.mark.parametrize(
    ("first", "last", "said"),
    [
        (FIRST, b"v=" + b"A" * 43 + b"=", "wrong signature"),
        (FIRST, b"e=invalid-proof", "left out 'v'"),
        (FIRST, b"nonsense", "."),
        (FIRST.replace(b"rOprN", b"xxxxx"), LAST, "nonce"),
        (FIRST.replace(b"i=4096", b"i=4095"), LAST, "fewer than 4096 iterations"),
        (FIRST.replace(b"i=4096", b"i=99999999"), LAST, "too large"),
        (FIRST.replace(b",i=4096", b""), LAST, "no number of them"),
        (FIRST.replace(b",s=", b",x="), LAST, "left out 's'"),
        (FIRST, b"\xff\xfe", "."),
    ],
)
def test_a_server_that_does_not_know_the_password_is_found_out(first: bytes, last: bytes, said: str) -> None:
    """So is one that asks for less work than Kafka lets a server ask for."""
    talk = messages("SCRAM-SHA-256", "user", "pencil", nonce=NONCE)
    next(talk)
    with pytest.raises(ValueError, match=said):
        [talk.send(answer) for answer in (first, last)]


def test_a_name_with_commas_and_equals_signs_stays_one_name() -> None:
    """RFC 5802 §5.1 writes them as =2C and =3D."""
    talk = messages("SCRAM-SHA-512", "a=b,c", "p", nonce="n")
    assert next(talk) == b"n,,n=a=3Db=2Cc,r=n"


def test_each_exchange_draws_a_nonce_of_its_own() -> None:
    """Or an old answer would do."""
    assert len({next(messages("SCRAM-SHA-512", "u", "p")) for _ in range(3)}) == 3


def test_plain_says_all_at_once() -> None:
    """User and password, for nobody else (RFC 4616); whatever comes back without an error ends it."""
    talk = messages("PLAIN", "alice", "sécret")
    assert next(talk) == "\0alice\0sécret".encode()
    with pytest.raises(StopIteration):
        talk.send(b"")


COORDINATOR_1 = struct.pack(">ihhi", 0, 0, -1, 1) + struct.pack(">h1si", 1, b"h", 9)
HEARD = struct.pack(">hih5s", 0, 1, 5, b"PLAIN")
UNHEARD = struct.pack(">hih13s", 33, 1, 13, b"SCRAM-SHA-512")
NO_SASL = struct.pack(">hi", 34, 0)
LET_IN = struct.pack(">hhiq", 0, -1, 0, 0)
LET_IN_SHORTLY = struct.pack(">hhiq", 0, -1, 0, 1)
WRONG_PASSWORD = struct.pack(">hh3siq", 58, 3, b"No!", 0, 0)
ALICE = Security(credentials=Credentials("PLAIN", "alice", "hunter2"), config="c.properties")
HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"
ALERT = bytes.fromhex("15030300020250")
Serve = Callable[[socket.socket], None]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Returns certificates, made once."""
    return certificates_in(tmp_path_factory.mktemp("certificates"))


@contextmanager
def _listening(*serves: Serve) -> Iterator[tuple[str, int]]:
    """Serves one connection after the other, on an address of this machine."""

    def serve(listener: socket.socket) -> None:
        for one in serves:
            link, _ = listener.accept()
            with link, suppress(OSError):  # whoever ends it, and how, the client's side shows
                one(link)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadGroup("broker") as thread_group:
        thread_group.start("serve", serve, listener)
        yield "localhost", listener.getsockname()[1]


def _answering(*answers: bytes) -> Serve:
    def serve(link: socket.socket) -> None:
        for answer in answers:
            size = struct.unpack(">i", link.recv(4))[0]
            correlation = struct.unpack_from(">hhi", link.recv(size))[2]
            link.sendall(struct.pack(">ii", len(answer) + 4, correlation) + answer)
        link.recv(1)

    return serve


def _in_tls(own: Path, serve: Serve, *, clients_of: Path | None = None) -> Serve:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    if clients_of:
        context.load_verify_locations(clients_of)
        context.verify_mode = ssl.CERT_REQUIRED

    def secured(link: socket.socket) -> None:
        with context.wrap_socket(link, server_side=True) as inner:
            serve(inner)

    return secured


def _saying(text: bytes) -> Serve:
    def serve(link: socket.socket) -> None:
        link.recv(1 << 12)
        link.sendall(text)

    return serve


def _trusting(authority: Path, **given: str) -> Security:
    problems: list[str] = []
    words = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority)}
    tls = tls_context(words | {name.replace("_", "."): value for name, value in given.items()}, problems)
    assert problems == []
    return Security(tls=tls, config="c.properties")


def _asked(address: tuple[str, int], security: Security) -> int:
    connection = Connection(address, answer_within_s=5, security=security)
    try:
        return coordinator(connection, "g")
    finally:
        connection.close()


def test_a_trusted_broker_is_asked_in_tls(certificates: Certificates) -> None:
    """Its certificate is signed by whom we trust, and names its host."""
    with _listening(_in_tls(certificates.server, _answering(COORDINATOR_1))) as address:
        assert _asked(address, _trusting(certificates.authority)) == 1


def test_a_broker_is_not_trusted_for_its_word(certificates: Certificates) -> None:
    """Another authority signed its certificate; no request is ever sent, and the error says where to put which."""
    with _listening(_in_tls(certificates.server, _answering(COORDINATOR_1))) as address:
        said = rf"localhost:{address[1]}: its certificate is not trusted .*ssl\.truststore\.location .*c\.properties"
        with pytest.raises(InputError, match=said):
            _asked(address, _trusting(certificates.stranger))


def test_a_certificate_of_another_host_is_refused_unless_names_do_not_count(certificates: Certificates) -> None:
    """The address is not in the certificate; the name is."""
    serve = _in_tls(certificates.server, _answering(COORDINATOR_1))
    with _listening(serve, serve) as (_, port):
        here = ("127.0.0.1", port)
        with pytest.raises(InputError, match=rf"127.0.0.1:{port}: its certificate is another host's .*identification"):
            _asked(here, _trusting(certificates.authority))
        unnamed = _trusting(certificates.authority, ssl_endpoint_identification_algorithm="")
        assert _asked(here, unnamed) == 1


def test_a_brokers_own_certificate_is_enough_to_trust_it(certificates: Certificates) -> None:
    """As in Java: what is in a truststore is trusted, whoever signed it."""
    with _listening(_in_tls(certificates.server, _answering(COORDINATOR_1))) as address:
        assert _asked(address, _trusting(certificates.server)) == 1


def test_a_client_certificate_is_shown_where_one_is_asked_for(certificates: Certificates) -> None:
    """With it we are let in; without it, or with a stranger's, the error names the keystore."""
    serve = _in_tls(certificates.server, _answering(COORDINATOR_1), clients_of=certificates.authority)
    own = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(certificates.client)}
    strangers = own | {"ssl_keystore_location": str(certificates.stranger)}
    with _listening(serve, serve, serve) as address:
        assert _asked(address, _trusting(certificates.authority, **own)) == 1
        for given in ({}, strangers):
            with pytest.raises(InputError, match=r"takes no client without .*ssl\.keystore\.location in c\.properties"):
                _asked(address, _trusting(certificates.authority, **given))


@pytest.mark.parametrize("text", [b"", HTTP], ids=["closes", "speaks something else"])
def test_tls_to_a_plaintext_listener_is_told_at_once(certificates: Certificates, text: bytes) -> None:
    """Kafka's closes the connection; in no case is it waited for."""
    with _listening(_saying(text)) as address:
        told = r"plaintext listener.*security\.protocol (is|must be) PLAINTEXT"
        with pytest.raises((NoAnswerError, InputError), match=rf"localhost:{address[1]}: .*{told}"):
            _asked(address, _trusting(certificates.authority))


def test_plaintext_to_a_tls_listener_is_told() -> None:
    """Its alert is no answer of so and so many bytes."""
    said = r"it answers in TLS: security\.protocol of this listener is SSL"
    with _listening(_saying(ALERT)) as address, pytest.raises(NoAnswerError, match=said):
        _asked(address, Security())


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((UNHEARD,), r"no PLAIN, but SCRAM-SHA-512: set sasl\.mechanism in c\.properties"),
        ((NO_SASL,), r"does not speak SASL \(ILLEGAL_SASL_STATE \(34\)\): security\.protocol must be PLAINTEXT"),
        ((HEARD, WRONG_PASSWORD), r"user alice with that password \(SASL_AUTHENTICATION_FAILED \(58\): No!\): check"),
    ],
    ids=["mechanism", "no sasl", "password"],
)
def test_who_is_not_let_in_is_told_why(answers: Sequence[bytes], said: str) -> None:
    """With the broker's words, the setting, and its file; never the password."""
    with _listening(_answering(*answers)) as address:
        with pytest.raises(InputError, match=rf"localhost:{address[1]}: .*{said}") as told:
            _asked(address, ALICE)
        assert "hunter2" not in str(told.value)


def test_a_wrong_password_is_tried_once() -> None:
    """Not at every broker of the list: accounts are locked after a few tries."""
    with (
        _listening(_answering(HEARD, WRONG_PASSWORD)) as (host, port),
        Brokers(f"{host}:{port},{host}:{port}", answer_within_s=0.5, security=ALICE) as brokers,
        pytest.raises(InputError),
    ):
        brokers.anyone(lambda connection: coordinator(connection, "g"))


def test_a_reader_that_is_not_let_in_says_so_as_everybody_does() -> None:
    """An audit's readers are threads, each with connections of its own: their wrong input is no crash of a thread."""
    with _listening(_answering(HEARD, WRONG_PASSWORD)) as (host, port):
        asked = AuditRequest(f"{host}:{port}", "t", "g", 0, 1, security=ALICE)
        budget = Budget(asked.limits, until_s=math.inf)
        with pytest.raises(InputError, match=rf"^localhost:{port}: does not take user alice"):
            read_records(asked, "t", {0: (0, 1)}, budget, lambda found: None, identity=None)


def test_a_connection_that_has_lived_its_time_is_made_anew() -> None:
    """The broker would close it at the next request; one without a bound is kept."""
    shortly = _answering(HEARD, LET_IN_SHORTLY, COORDINATOR_1)
    lasting = _answering(HEARD, LET_IN, COORDINATOR_1, COORDINATOR_1)
    with _listening(shortly, lasting) as (host, port), Brokers(f"{host}:{port}", security=ALICE) as brokers:
        opened = [_connection_asked(brokers)]
        wait_until(lambda: opened[0].over, within_s=5, what="the first connection's time to be over")
        opened += [_connection_asked(brokers), _connection_asked(brokers)]
        assert [opened[1] is opened[0], opened[2] is opened[1], opened[1].over] == [False, True, False]


def _connection_asked(brokers: Brokers) -> Connection:
    """Asks, and returns the connection that the answer came over."""
    assert brokers.anyone(lambda connection: coordinator(connection, "g")) == 1
    (held,) = brokers._open.values()
    return held
