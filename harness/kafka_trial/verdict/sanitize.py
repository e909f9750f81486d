"""Words of others in a verdict: on one line, bounded, without paths."""

from __future__ import annotations

import re

# verdict.json holds no paths: of an absolute one only the last name is kept.
PATH = re.compile(r"(?:(?<=\s)|^|(?<=['\"(=]))/(?:[^\s/'\"()]+/)+([^\s/'\"()]*)")
MESSAGE_MAX = 400


def plain(message: object) -> str:
    """Returns a message on one line, bounded, without paths."""
    text = PATH.sub(r"\1", str(message)[: 4 * MESSAGE_MAX])
    return "".join(letter if letter.isprintable() else " " for letter in text)[:MESSAGE_MAX]
