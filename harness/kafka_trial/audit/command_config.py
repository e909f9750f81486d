"""`--command-config FILE`: how to get into a secured cluster, said as Kafka's own command line tools are told.

Everything wrong with the file is told at once, before any broker is asked; no value of it is ever quoted, except for
names of mechanisms, protocols, stores and files. What is set there and not used here is named, as Kafka's tools do.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from kafka_trial.audit.properties import LoginModule, parse_jaas, parse_properties
from kafka_trial.audit.stores import tls_context
from kafka_trial.errors import InputError
from kafka_trial.kafka_protocol.security import MECHANISMS, Credentials, Security

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
DEFAULT_MECHANISM = "GSSAPI"  # Kafka's
USED = {
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    *(f"ssl.truststore.{name}" for name in ("type", "location", "certificates", "password")),
    *(f"ssl.keystore.{name}" for name in ("type", "location", "key", "certificate.chain", "password")),
}
MODULES = {"PLAIN": "PlainLoginModule", "SCRAM-SHA-256": "ScramLoginModule", "SCRAM-SHA-512": "ScramLoginModule"}


def read_command_config(path: Path) -> tuple[Security, tuple[str, ...]]:
    """Returns how connections are to be secured, and the keys of the file that are not used here.

    Raises:
        InputError: it cannot be read, or asks for what there is not.
    """
    where = f"--command-config {path}"
    try:
        given = parse_properties(path.read_text(encoding="latin-1"))  # as Java reads it
    except OSError as error:
        raise InputError(where, f"cannot be read: {error.strerror}. Check the path") from error
    except ValueError as error:
        raise InputError(where, f"is no properties file: {error}") from error
    problems: list[str] = []
    security = _security(given, str(path), problems)
    if problems:
        raise InputError(where, problems)
    return security, tuple(sorted(set(given) - USED))


def _security(given: Mapping[str, str], config: str, problems: list[str]) -> Security:
    protocol = given.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        problems.append(f"security.protocol {protocol!r} is none; valid: {', '.join(PROTOCOLS)}")
        return Security()
    if "config.providers" in given:
        problems.append("config.providers: values from providers are not in this version; write them out")
    tls: ssl.SSLContext | None = tls_context(given, problems) if protocol.endswith("SSL") else None
    credentials = _credentials(given, problems) if protocol.startswith("SASL_") else None
    return Security(tls=tls, credentials=credentials, config=config)


def _credentials(given: Mapping[str, str], problems: list[str]) -> Credentials | None:
    mechanism = given.get("sasl.mechanism", DEFAULT_MECHANISM).strip()
    if mechanism not in MECHANISMS:
        unset = "" if "sasl.mechanism" in given else " (not set: Kafka's default)"
        problems.append(
            f"sasl.mechanism {mechanism}{unset} is not in this version; valid: {', '.join(MECHANISMS)}. Is there a "
            "listener, or a user, for one of these?"
        )
        return None
    module = _login_module(given, problems)
    if module is None:
        return None
    wrong = _module_problems(module, mechanism)
    problems += wrong
    return None if wrong else Credentials(mechanism, module.options["username"], module.options["password"])


def _login_module(given: Mapping[str, str], problems: list[str]) -> LoginModule | None:
    if not given.get("sasl.jaas.config", "").strip():
        problems.append(
            "sasl.jaas.config, which holds user and password, is not set; a JVM's own JAAS file is not read here"
        )
        return None
    try:
        return parse_jaas(given["sasl.jaas.config"])
    except ValueError as error:
        problems.append(f"sasl.jaas.config: {error}")
        return None


def _module_problems(module: LoginModule, mechanism: str) -> list[str]:
    name, wanted = module.name.rpartition(".")[2], MODULES[mechanism]
    if name != wanted:
        return [f"sasl.jaas.config names the login module {name}; {mechanism} needs {wanted}"]
    if module.options.get("tokenauth", "").lower() == "true":
        return ["sasl.jaas.config: delegation tokens (tokenauth) are not in this version; give a user and its password"]
    missing = [option for option in ("username", "password") if not module.options.get(option)]
    return [f"sasl.jaas.config: it has no {option}" for option in missing]
