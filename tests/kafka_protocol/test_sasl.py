"""SASL's messages: RFC 5802's and RFC 7677's published exchanges, and servers that are not who they should be."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from unittest import mock

import pytest
from kafka.net.sasl.scram import ScramClient

from kafka_trial.kafka_protocol.sasl import messages

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
