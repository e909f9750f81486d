"""Which twelve cells of the crash matrix are tried in `make test`, and what is delivered there.

Chosen by pairs. All 8 of point and protocol are among them. Of way and protocol there are 16, and of way and point 22
that a program can be at: twelve cells have at most twelve of each, and these have twelve of each. So four ways are
tried by both protocols and four by one, and each way at one point, or at two. The other pairs: `make cases`.
"""

from __future__ import annotations

from lab.cases.crash_matrix import AFTER_COMMIT, AFTER_EFFECT, BEFORE_COMMIT, BEFORE_PROCESSING
from lab.cases.crash_rows import AT_LEAST_ONCE, AT_MOST_ONCE, EXACTLY_ONCE

CHOSEN = {  # what is delivered there; the claim is each consumer's own
    "early/classic/commit-taken": (AFTER_COMMIT, AT_MOST_ONCE, "pass"),
    "early/consumer/commit-leaves": (BEFORE_COMMIT, EXACTLY_ONCE, "pass"),
    "late/classic/commit-leaves": (AFTER_EFFECT, AT_LEAST_ONCE, "pass"),
    "late/consumer/records-in-hand": (BEFORE_PROCESSING, EXACTLY_ONCE, "pass"),
    "auto-commit/consumer/commit-leaves": (AFTER_EFFECT, AT_LEAST_ONCE, "pass"),
    "position-in-database/classic/asks-after-effect": (AFTER_EFFECT, EXACTLY_ONCE, "pass"),
    "position-in-database/consumer/asks-after-commit": (AFTER_COMMIT, EXACTLY_ONCE, "pass"),
    "without-the-condition/classic/asks-before-processing": (BEFORE_PROCESSING, EXACTLY_ONCE, "pass"),
    "upsert-by-id/consumer/commit-leaves": (AFTER_EFFECT, EXACTLY_ONCE, "pass"),
    "upsert-by-key/classic/commit-leaves": (AFTER_EFFECT, AT_LEAST_ONCE, "pass"),
    "transactional/classic/end-leaves": (BEFORE_COMMIT, EXACTLY_ONCE, "pass"),
    "transactional/consumer/offsets-leave": (AFTER_EFFECT, EXACTLY_ONCE, "pass"),
}
