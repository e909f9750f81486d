"""`--command-config FILE`: how to get into a secured cluster, said as Kafka's own command line tools are told.

Everything wrong with the file is told at once, before any broker is asked; no value of it is ever quoted (values are
passwords), except for names of mechanisms, protocols, stores and files. What is set there and not used here is named,
as Kafka's tools do.

First the two syntaxes: Java's `.properties`, and the JAAS line inside it, read as Java reads them
(`java.util.Properties.load`, Kafka's `JaasConfig`). Then key and trust stores as TLS: PEM ones only (KIP-651), kept as
lenient as Kafka is: a PEM written on one line, text between its blocks, an intermediate or a broker's own certificate
as all there is to trust. A private key given as text goes to OpenSSL through memory, never to a disk.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from kafka_trial.errors import InputError
from kafka_trial.kafka_protocol.security import MECHANISMS, Credentials, Security

KEY_AND_VALUE = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
TOKEN = re.compile(r"""\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([=;])|([^\s"'=;]+))""", re.DOTALL)
ESCAPED_IN_TOKEN = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
CONTROLS_IN_TOKEN = CONTROLS | {"a": "\a", "b": "\b", "v": "\v"}
FLAGS = ("required", "requisite", "sufficient", "optional")


class Sign(Enum):
    """What separates words in a JAAS line; in quotation marks it is a word like others."""

    IS = "="
    END = ";"


@dataclass(frozen=True)
class LoginModule:
    """The login module of a JAAS line: its class, and its options, which hold the password."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_properties(text: str) -> dict[str, str]:
    """Returns the keys and values of a `.properties` text; the last of several equal keys counts.

    Raises:
        ValueError: an escape that is none.
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        match = KEY_AND_VALUE.fullmatch(line)
        if match:
            found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def parse_jaas(text: str) -> LoginModule:
    """Returns the one login module of a `sasl.jaas.config`: `class flag key="value"… ;`.

    Raises:
        ValueError: it is not written like that; no value is quoted.
    """
    tokens = list(_tokens(text))
    if len(tokens) < 2 or isinstance(tokens[0], Sign) or str(tokens[1]).lower() not in FLAGS:
        raise ValueError(f"the class of a login module, then one of {', '.join(FLAGS)}, must come first")
    if tokens.count(Sign.END) != 1 or tokens[-1] is not Sign.END:
        raise ValueError("it must hold exactly one login module, and end with a semicolon")
    keys, signs, values = tokens[2:-1:3], tokens[3:-1:3], tokens[4:-1:3]
    if not len(keys) == len(signs) == len(values) or {*signs} - {Sign.IS} or Sign.IS in [*keys, *values]:
        raise ValueError('after the flag come options only, each as key="value"')
    return LoginModule(str(tokens[0]), {str(key): str(value) for key, value in zip(keys, values, strict=True)})


def _logical_lines(text: str) -> Iterator[str]:
    """Yields the lines with their continuations, without comments and blank lines."""
    begun: str | None = None
    for line in re.split(r"\r\n|\r|\n", text):
        part = line.lstrip(" \t\f")
        if begun is None and (not part or part[0] in "#!"):
            continue
        continues = (len(part) - len(part.rstrip("\\"))) % 2 == 1
        begun = (begun or "") + (part[:-1] if continues else part)
        if not continues:
            yield begun
            begun = None
    if begun is not None:
        yield begun


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match[1] == "u":
            raise ValueError("it has a \\u without the four hexadecimal digits of a character")
        return chr(int(match[1][1:], 16)) if len(match[1]) > 1 else CONTROLS.get(match[1], match[1])

    try:  # Java's characters are halves of UTF-16: two escapes may be one character
        return ESCAPED.sub(plain, text).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("it has a \\u escape that is only half of a character") from None


def _tokens(text: str) -> Iterator[str | Sign]:
    place, text = 0, text.strip()
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"a quotation mark that is not closed, after its character {place}")
        double, single, sign, word = match.groups()
        quoted = single if double is None else double
        if sign:
            yield Sign(sign)
        else:
            yield word if quoted is None else ESCAPED_IN_TOKEN.sub(_token_escape, quoted)
        place = match.end()


def _token_escape(match: re.Match[str]) -> str:
    if match[1][0] in "01234567":
        return chr(int(match[1], 8))
    return CONTROLS_IN_TOKEN.get(match[1], match[1])


PEM = "PEM"
DEFAULT_TYPE = "JKS"  # Kafka's
BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
CERTIFICATE = "CERTIFICATE"
LINE = 64
TRUST, KEYS = "ssl.truststore", "ssl.keystore"
INLINE = {TRUST: ("ssl.truststore.certificates",), KEYS: ("ssl.keystore.key", "ssl.keystore.certificate.chain")}
CONVERT = {
    TRUST: "`keytool -list -rfc -keystore {place} > truststore.pem`",
    KEYS: "`keytool -importkeystore -srckeystore {place} -destkeystore keystore.p12 -deststoretype PKCS12`, then "
    "`openssl pkcs12 -in keystore.p12 -out keystore.pem`",
}


def tls_context(given: Mapping[str, str], problems: list[str]) -> ssl.SSLContext:
    """Returns the TLS that a properties file asks for; what is wrong with its stores is added to `problems`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = bool(given.get("ssl.endpoint.identification.algorithm", "https").strip())
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as Java: whatever is in the truststore is trusted
    trusted = _pem(given, TRUST, problems)
    if trusted is None:
        context.load_default_certs()
    elif trusted:
        _trust(context, trusted, problems)
    if own := _pem(given, KEYS, problems):
        _show(context, own, given.get("ssl.key.password", ""), problems)
    return context


def blocks(text: str) -> list[tuple[str, str]]:
    """Returns the PEM blocks of a text with their labels, each in lines as OpenSSL wants them."""
    found = []
    for label, body in BLOCK.findall(text):
        # Headers, as old encrypted keys have them, mean something as they stand.
        lines = body if ":" in body else _in_lines(re.sub(r"\s+", "", body))
        found.append((label, f"-----BEGIN {label}-----{lines}-----END {label}-----\n"))
    return found


def _in_lines(text: str) -> str:
    return "\n" + "".join(f"{text[at : at + LINE]}\n" for at in range(0, len(text), LINE))


def _pem(given: Mapping[str, str], store: str, problems: list[str]) -> str | None:
    """Returns a store's PEM text; nothing where it is not as it should be; None where none is given."""
    place = given.get(f"{store}.location", "").strip()
    inline = [name for name in INLINE[store] if given.get(name, "").strip()]
    if not place and not inline:
        return None
    wrong = _problems(given, store, place, inline)
    text = "" if wrong else _text(given, place, inline, wrong)
    found = [block for _, block in blocks(text)]
    if not wrong and not found:
        wrong.append(f"{_named(store, place, inline)}: there is no PEM block (-----BEGIN …-----) in it")
    problems += wrong
    return "" if wrong else "".join(found)


def _problems(given: Mapping[str, str], store: str, place: str, inline: list[str]) -> list[str]:
    kind = given.get(f"{store}.type", DEFAULT_TYPE).strip()
    if kind.upper() != PEM:
        convert = CONVERT[store].format(place=place or "FILE")
        option = f"set {store}.type=PEM, {store}.location to the new file, and no {store}.password"
        unset = "" if f"{store}.type" in given else " (Kafka's default)"
        return [f"{store}.type is {kind}{unset}; only PEM is read here. Convert it with {convert} and {option}"]
    wrong = []
    if place and inline:
        wrong.append(f"{store}.location and {' and '.join(inline)} are both set: leave one of them away")
    if f"{store}.password" in given:
        wrong.append(f"{store}.password: PEM stores have none; leave it away (the key's own is ssl.key.password)")
    missing = [name for name in INLINE[store] if name not in inline]
    if inline and missing:
        wrong.append(f"{' and '.join(inline)} needs {' and '.join(missing)} beside it")
    return wrong


def _text(given: Mapping[str, str], place: str, inline: list[str], wrong: list[str]) -> str:
    if inline:
        return "\n".join(given[name] for name in inline)
    try:
        return Path(place).read_text(encoding="latin-1")
    except OSError as error:
        wrong.append(f"{place} cannot be read: {error.strerror}")
        return ""


def _named(store: str, place: str, inline: list[str]) -> str:
    return f"{store}.location {place}" if place else " and ".join(inline)


def _trust(context: ssl.SSLContext, pem: str, problems: list[str]) -> None:
    certificates = "".join(block for label, block in blocks(pem) if label == CERTIFICATE)
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        problems.append(f"{TRUST}: OpenSSL reads no certificates in it ({_reason(error)})")


def _show(context: ssl.SSLContext, pem: str, password: str, problems: list[str]) -> None:
    descriptor = os.memfd_create("keystore")
    with open(descriptor, "wb") as memory:
        memory.write(pem.encode("latin-1"))
        memory.flush()
        try:
            # A function as password, or OpenSSL would ask for one on the terminal.
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: password)
        except (OSError, ValueError) as error:
            problems.append(
                f"{KEYS}: OpenSSL finds no private key with its certificate in it ({_reason(error)}). It must hold "
                "both, the client's own certificate first, and ssl.key.password the password of an encrypted key"
            )


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or type(error).__name__)


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
