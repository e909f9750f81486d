"""The checksums of a set of jars: made when a version is brought in, and compared ever after.

Ivy has compared each jar with the checksum beside it in the repository. A jar that another set has too must be the
very same: else one of the two was tampered with on its way.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from kafka_trial.cluster.jars import CHECKSUMS, JarSet, checksums_in, retrieve, sha256
from kafka_trial.errors import InputError


def pin_jars(jars: JarSet) -> str:
    """Fetches a set of jars and commits their checksums; returns what became of them, in a sentence.

    A set that is pinned is left as it is: what is served now may be something else.

    Raises:
        InputError: a jar of the same name has another checksum in another set.
        StartError: the jars cannot be resolved.
    """
    listing = CHECKSUMS / jars.checksums
    if listing.exists():
        return f"{len(checksums_in(listing))} jars, pinned before"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "jars"
        retrieve(jars, place, about=f"some {jars.size_mb} MB")
        found = {jar.name: sha256(jar) for jar in sorted(place.glob("*.jar"))}
    known = pinned_elsewhere(listing)
    if other := sorted(name for name in found if known.get(name, found[name]) != found[name]):
        raise InputError(
            f"jars of {jars.what}",
            [f"{name}: sha256 {found[name]}, committed of another set {known[name]}" for name in other],
        )
    listing.write_text("".join(f"{digest}  {name}\n" for name, digest in found.items()))
    return f"{len(found)} jars, {len(found.keys() - known.keys())} of them in no other set"


def pinned_elsewhere(listing: Path) -> dict[str, str]:
    """Returns the digest of each jar that a set of another listing has."""
    others = [file for file in sorted(CHECKSUMS.glob("*.sha256")) if file.name != listing.name]
    return {name: digest for other in others for name, digest in checksums_in(other).items()}
