"""What a member was handed before it sought to its own start, for the naive checker.

Only who keeps its progress outside of Kafka seeks there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from lab.naive.responses import TOLERANCE_NS

if TYPE_CHECKING:
    from lab.naive.checker import OwnershipEpoch, Partition, Work


def landing(p: Partition, epoch: OwnershipEpoch) -> Work | None:
    """Where it went on after it had last gone back, or over a record, before it began to work; None: it never did."""
    begun = sorted((one for one in p.begun if one.ownership_epoch == epoch), key=lambda one: one.event.seq)
    found = None
    for one, following in pairwise(begun):
        if _works(p, one):
            break
        if following.offset < one.offset or any(one.offset < offset < following.offset for offset in p.records):
            found = following
    return found


def is_before(p: Partition, work: Work, epoch: OwnershipEpoch | None) -> bool:
    """Handed out, or ended, before that."""
    landed = p.landing(epoch)
    return landed is not None and work.event.seq < landed.event.seq


def is_above(p: Partition, work: Work) -> bool:
    """And of a record that the member came to again in turn, or would have."""
    landed = p.landing(work.ownership_epoch)
    return landed is not None and work.offset >= landed.offset and is_before(p, work, work.ownership_epoch)


def _works(p: Partition, begun: Work) -> bool:
    """It ended, and not in the word that it was discarded; or the sink heard of it before the next one to have it."""
    ended = begun if begun.event.kind == "processed" else p.end_of(begun)
    if ended is not None and ended.event.outcome != "discarded":
        return True
    alike = sorted((one for one in p.begun if one.offset == begun.offset), key=lambda one: one.event.time_ns)
    later = alike[alike.index(begun) + 1 :]
    until_ns = p.trial.earliest_ns(later[0].event.time_ns) - TOLERANCE_NS if later else float("inf")
    return any(begun.event.time_ns <= effect.time_ns < until_ns for effect, of in p.effects_seen if of == begun.offset)
