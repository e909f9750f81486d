"""Key and trust stores of a client's properties file, as TLS: PEM ones only (KIP-651).

Kept as lenient as Kafka is: a PEM written on one line, text between its blocks, an intermediate or a broker's own
certificate as all there is to trust. A private key given as text goes to OpenSSL through memory, never to a disk.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path

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
