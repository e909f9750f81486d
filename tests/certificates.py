"""Certificates for tests, made by the openssl that is on PATH: an authority, what it signs, and a stranger's."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from requirements import missing

KEY_PASSWORD = "key-secret"


@dataclass(frozen=True)
class Certificates:
    """PEM files: what to trust, keys with their certificates, and an authority that signed none of them."""

    authority: Path
    server: Path
    client: Path
    client_locked: Path
    stranger: Path


def certificates_in(folder: Path) -> Certificates:
    """Returns certificates made in a folder; the server's is that of `localhost`, and of no address."""
    if shutil.which("openssl") is None:
        missing("openssl", "no openssl on PATH: nobody makes the certificates of this test")
    folder.mkdir(parents=True, exist_ok=True)
    authority = _made(folder, "authority")
    made = {name: _made(folder, name, signed_by=authority) for name in ("server", "client")}
    locked = folder / "client-locked.pem"
    _openssl("pkcs8", "-topk8", "-in", made["client"], "-out", locked, "-passout", f"pass:{KEY_PASSWORD}")
    locked.write_text(locked.read_text() + _certificate(made["client"]))
    return Certificates(authority, made["server"], made["client"], locked, _made(folder, "stranger"))


def _made(folder: Path, name: str, *, signed_by: Path | None = None) -> Path:
    """Makes a key and its certificate, and returns the file that holds both."""
    key, certificate, both = (folder / f"{name}.{end}" for end in ("key", "crt", "pem"))
    signer = ["-CA", signed_by, "-CAkey", signed_by] if signed_by else []
    names = ["-addext", "subjectAltName=DNS:localhost"] if name == "server" else []
    constraint = "CA:FALSE" if signed_by else "critical,CA:TRUE"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "2"]
    _openssl(
        *("req", "-x509", *kind, "-subj", f"/CN={name}", "-addext", f"basicConstraints={constraint}", *names, *signer),
        *("-keyout", key, "-out", certificate),
    )
    both.write_text(key.read_text() + certificate.read_text())
    return both


def _certificate(both: Path) -> str:
    text = both.read_text()
    return text[text.index("-----BEGIN CERTIFICATE-----") :]


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
