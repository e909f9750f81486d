"""The checksums of a Kafka version's jars: made when the version is brought in, and compared ever after.

Ivy has compared each jar with the checksum beside it in the repository. A jar that another version has too must be the
very same: else one of the two was tampered with on its way.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from kafka_trial.cluster.kafka_jars import CHECKSUMS, JARS_MB, committed_checksums, retrieve, sha256
from kafka_trial.cluster.versions import KNOWN
from kafka_trial.errors import InputError


def pin_jars(version: str) -> str:
    """Fetches the jars of a version and commits their checksums; returns what became of them, in a sentence.

    A version whose jars are pinned is left as it is: what is served now may be something else.

    Raises:
        InputError: a jar of the same name has another checksum in another version.
        StartError: the jars cannot be resolved.
    """
    listing = CHECKSUMS / f"{version}.sha256"
    if listing.exists():
        return f"{len(committed_checksums(version))} jars, pinned before"
    with tempfile.TemporaryDirectory() as folder:
        jars = Path(folder) / "jars"
        retrieve(KNOWN[version], jars, about=f"some {JARS_MB} MB")
        found = {jar.name: sha256(jar) for jar in sorted(jars.glob("*.jar"))}
    known = pinned_elsewhere(version)
    if other := sorted(name for name in found if known.get(name, found[name]) != found[name]):
        raise InputError(
            f"jars of Kafka {version}",
            [f"{name}: sha256 {found[name]}, committed of another version {known[name]}" for name in other],
        )
    listing.write_text("".join(f"{digest}  {name}\n" for name, digest in found.items()))
    return f"{len(found)} jars, {len(found.keys() - known.keys())} of them in no other version"


def pinned_elsewhere(version: str) -> dict[str, str]:
    """Returns the digest of each jar that a version other than this one has."""
    others = [file.stem for file in sorted(CHECKSUMS.glob("*.sha256")) if file.stem != version]
    return {name: digest for other in others for name, digest in committed_checksums(other).items()}
