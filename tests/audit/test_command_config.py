"""The properties file of an audit: every key it takes, every error it tells, and no password in any of it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import orjson
import pytest

from certificates import KEY_PASSWORD, Certificates, certificates_in
from kafka_trial.audit.command_config import blocks, read_command_config
from kafka_trial.audit.request import make_audit_request
from kafka_trial.errors import InputError
from kafka_trial.kafka_protocol.security import Credentials, Security

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hunter2";'
SCRAM = PLAIN.replace("plain.Plain", "scram.Scram")
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}
TLS = {"security.protocol": "SSL"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Returns certificates, made once."""
    return certificates_in(tmp_path_factory.mktemp("certificates"))


def _file(folder: Path, given: dict[str, str]) -> Path:
    path = folder / "client.properties"
    continued = {key: value.replace("\n", " \\\n") for key, value in given.items()}
    path.write_text("".join(f"{key}={value}\n" for key, value in continued.items()))
    return path


def _read(folder: Path, given: dict[str, str]) -> Security:
    security, unused = read_command_config(_file(folder, given))
    assert unused == ()
    return security


def _problems(folder: Path, given: dict[str, str]) -> list[str]:
    with pytest.raises(InputError) as told:
        read_command_config(_file(folder, given))
    assert "hunter2" not in str(told.value)
    assert str(folder / "client.properties") in str(told.value)
    return told.value.problems


@pytest.mark.parametrize(
    ("given", "protocol", "credentials"),
    [
        ({}, "PLAINTEXT", None),
        (TLS, "SSL", None),
        (SASL, "SASL_PLAINTEXT", Credentials("PLAIN", "alice", "hunter2")),
        (SASL | {"security.protocol": "sasl_ssl"}, "SASL_SSL", Credentials("PLAIN", "alice", "hunter2")),
        (
            SASL | {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": SCRAM},
            "SASL_PLAINTEXT",
            Credentials("SCRAM-SHA-256", "alice", "hunter2"),
        ),
        (
            SASL | {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM},
            "SASL_PLAINTEXT",
            Credentials("SCRAM-SHA-512", "alice", "hunter2"),
        ),
        (SASL | {"security.protocol": "PLAINTEXT"}, "PLAINTEXT", None),
    ],
)
def test_a_file_says_how_to_get_in(
    tmp_path: Path, given: dict[str, str], protocol: str, credentials: Credentials | None
) -> None:
    """Protocol, mechanism, user and password, as Kafka's own tools would take them from it."""
    security = _read(tmp_path, given)
    assert (security.protocol, security.credentials) == (protocol, credentials)


def test_what_is_not_used_here_is_named(tmp_path: Path) -> None:
    """As Kafka's tools warn of what they do not know."""
    _, unused = read_command_config(_file(tmp_path, {"client.id": "x", "ssl.protocol": "TLSv1.3", "acks": "all"}))
    assert unused == ("acks", "client.id", "ssl.protocol")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"security.protocol": "TLS"}, "security.protocol 'TLS' is none; valid: PLAINTEXT, SSL"),
        (SASL | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism GSSAPI is not in this version; valid: PLAIN, SCRAM"),
        (SASL | {"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism OAUTHBEARER is not in this version"),
        ({"security.protocol": "SASL_SSL"}, "GSSAPI (not set: Kafka's default) is not in this version"),
        (SASL | {"sasl.jaas.config": ""}, "sasl.jaas.config, which holds user and password, is not set"),
        (SASL | {"sasl.jaas.config": PLAIN[:-1]}, "sasl.jaas.config: it must hold exactly one login module"),
        (SASL | {"sasl.jaas.config": SCRAM}, "names the login module ScramLoginModule; PLAIN needs PlainLoginModule"),
        (SASL | {"sasl.mechanism": "SCRAM-SHA-512"}, "SCRAM-SHA-512 needs ScramLoginModule"),
        (SASL | {"sasl.jaas.config": PLAIN.replace("username", "user")}, "sasl.jaas.config: it has no username"),
        (SASL | {"sasl.jaas.config": PLAIN.replace("hunter2", "")}, "sasl.jaas.config: it has no password"),
        (SASL | {"sasl.jaas.config": PLAIN.replace(";", ' tokenauth="true";')}, "delegation tokens (tokenauth)"),
        (SASL | {"config.providers": "env"}, "config.providers: values from providers are not in this version"),
        (TLS | {"ssl.truststore.location": "t.jks"}, "JKS (Kafka's default); only PEM is read here. Convert it with"),
        (TLS | {"ssl.truststore.location": "t.jks"}, "`keytool -list -rfc -keystore t.jks > truststore.pem`"),
        (
            TLS | {"ssl.truststore.location": "t", "ssl.truststore.type": "PKCS12"},
            "ssl.truststore.type is PKCS12;",
        ),
        (TLS | {"ssl.keystore.location": "k.jks"}, "`keytool -importkeystore -srckeystore k.jks -destkeystore"),
        (TLS | {"ssl.keystore.location": "k", "ssl.keystore.type": "PKCS12"}, "openssl pkcs12 -in keystore.p12"),
        (TLS | {"ssl.truststore.type": "PEM", "ssl.truststore.location": "no.pem"}, "no.pem cannot be read: No such"),
        (
            TLS | {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "hunter2"},
            "ssl.truststore.certificates: there is no PEM block",
        ),
        (
            TLS | {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "x", "ssl.truststore.location": "y"},
            "ssl.truststore.location and ssl.truststore.certificates are both set",
        ),
        (
            TLS | {"ssl.truststore.type": "PEM", "ssl.truststore.location": "y", "ssl.truststore.password": "hunter2"},
            "ssl.truststore.password: PEM stores have none",
        ),
        (
            TLS | {"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"},
            "ssl.keystore.key needs ssl.keystore.certificate.chain beside it",
        ),
        (
            TLS
            | {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----hunter2-----END CERTIFICATE-----",
            },
            "ssl.truststore: OpenSSL reads no certificates in it",
        ),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(tmp_path: Path, given: dict[str, str], said: str) -> None:
    """One problem each, and no value that may be a password in it."""
    (problem,) = _problems(tmp_path, given)
    assert said in problem


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Who corrects one finds no second."""
    given = {"security.protocol": "SASL_SSL", "ssl.truststore.location": "t.jks", "ssl.keystore.location": "k.jks"}
    assert len(_problems(tmp_path, given)) == 3


@pytest.mark.parametrize("content", [None, b"a=\\u12"])
def test_a_file_that_is_none_is_told(tmp_path: Path, content: bytes | None) -> None:
    """One that is not there, one that is no properties file."""
    path = tmp_path / "client.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"--command-config .*client\.properties: (cannot be read|is no properties)"):
        read_command_config(path)


def test_a_truststore_is_a_file_or_a_text(tmp_path: Path, certificates: Certificates) -> None:
    """The same certificates are trusted, on one line too, and none beside them; keys in the file do not matter."""
    place = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates.authority)}
    text = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates.authority.read_text()}
    trusted = [_tls(_read(tmp_path, TLS | given)).get_ca_certs() for given in (place, text)]
    assert [len(trusted[0]), trusted[0][0]["subject"]] == [1, ((("commonName", "authority"),),)]
    assert trusted[1] == trusted[0]


def test_without_a_truststore_the_machines_own_is_trusted(tmp_path: Path) -> None:
    """As Kafka trusts what its Java does."""
    default = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    default.load_default_certs()
    assert _tls(_read(tmp_path, TLS)).cert_store_stats() == default.cert_store_stats()


@pytest.mark.parametrize(("algorithm", "checked"), [(None, True), ("https", True), ("", False)])
def test_the_host_name_is_checked_unless_the_file_says_no(
    tmp_path: Path, algorithm: str | None, *, checked: bool
) -> None:
    """Who signed the certificate is checked always."""
    more = {} if algorithm is None else {"ssl.endpoint.identification.algorithm": algorithm}
    tls = _tls(_read(tmp_path, TLS | more))
    assert (tls.check_hostname, tls.verify_mode) == (checked, ssl.CERT_REQUIRED)


def test_a_keystore_is_a_file_or_a_text_with_its_password(tmp_path: Path, certificates: Certificates) -> None:
    """An encrypted key needs its password, which is asked of nobody when it is missing or wrong."""
    key, chain = (block for _, block in blocks(certificates.client_locked.read_text()))
    place = TLS | {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificates.client_locked)}
    text = TLS | {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    for given in (place, text):
        _read(tmp_path, given | {"ssl.key.password": KEY_PASSWORD})
        for wrong in ({}, {"ssl.key.password": "hunter2"}):
            (problem,) = _problems(tmp_path, given | wrong)
            assert "ssl.keystore: OpenSSL finds no private key" in problem


def test_a_key_beside_anothers_certificate_is_told(tmp_path: Path, certificates: Certificates) -> None:
    """It would be refused by every broker."""
    key, chain = blocks(certificates.client.read_text())[0][1], blocks(certificates.server.read_text())[1][1]
    text = {"ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": chain}
    (problem,) = _problems(tmp_path, TLS | text)
    assert "KEY_VALUES_MISMATCH" in problem


def test_no_password_is_in_what_is_written_of_an_audit(tmp_path: Path) -> None:
    """Not in run.json's facts, not in any text of what was asked; the path of the file is."""
    security = _read(tmp_path, SASL)
    words: dict[str, Any] = {"bootstrap": "h:1", "topic": "t", "group": "g", "from": "1h", "until": "now"}
    asked = make_audit_request(words | {"security": security}, now_ns=1_800_000_000_000_000_000)
    written = orjson.dumps(asked.metadata).decode()
    assert "hunter2" not in written + repr(asked) + repr(security)
    assert asked.metadata["security"] == {
        "protocol": "SASL_PLAINTEXT",
        "command_config": str(tmp_path / "client.properties"),
    }


def _tls(security: Security) -> ssl.SSLContext:
    assert security.tls is not None
    return security.tls
