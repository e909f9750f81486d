"""Evidence of faults of handlers, judged from literal samples of what came to the sink."""

from __future__ import annotations

import pytest

from kafka_trial.nemesis import handler_evidence
from kafka_trial.nemesis.samples import EffectsSnapshot, MemberEffects


def look(*members: MemberEffects) -> EffectsSnapshot:
    return EffectsSnapshot(0, members)


WAITED = MemberEffects("m0", done=2, waiting=1, waited_s_max=2.4, done_s_min=2.0)
QUICK = MemberEffects("m1", done=5, waited_s_max=0.01, done_s_min=0.002)


@pytest.mark.parametrize(
    ("seen", "bit", "said"),
    [
        (look(WAITED), True, "waited for up to 2.4 s"),
        (look(MemberEffects("m0", waiting=1, waited_s_max=2.0)), True, "waited for up to 2.0 s"),
        (look(WAITED, QUICK), False, "done within 2 s (m1)"),
        (look(MemberEffects("m0")), False, "no effect waited for 2 s of m0"),
        (look(), False, "nothing to slow"),
    ],
)
def test_slow_handlers_all_wait(seen: EffectsSnapshot, bit: bool, said: str) -> None:
    """Of every member one waited so long, and none was done sooner; an idle member proves nothing."""
    found = handler_evidence.handlers_slow(seen, delay_s=2.0)
    assert (found.bit, said in found.message) == (True, True) if bit else (not found.bit and said in found.message)


def test_of_some_slow_handlers_others_may_be_quick() -> None:
    """Where only a few records are slow, one that waited is enough, and none is not."""
    both = MemberEffects("m0", done=9, waiting=1, waited_s_max=3.0, done_s_min=0.001)
    assert handler_evidence.some_handlers_slow(look(both), delay_s=2.0).bit
    assert not handler_evidence.some_handlers_slow(look(QUICK), delay_s=2.0).bit


@pytest.mark.parametrize(
    ("seen", "bit"),
    [
        (look(MemberEffects("m0", refused=3, refused_records=("r1",))), True),
        (look(MemberEffects("m0", refused=3, done=1, refused_records=("r1",))), False),
        (look(MemberEffects("m0", refused=3, refused_records=("r1",)), MemberEffects("m1")), False),
        (look(), False),
    ],
)
def test_failing_handlers_do_nothing(seen: EffectsSnapshot, bit: bool) -> None:
    """Of every member one was refused, and none was done."""
    assert handler_evidence.handlers_failing(seen).bit is bit


@pytest.mark.parametrize(
    ("seen", "bit"),
    [
        (look(MemberEffects("m0", done=7, refused=2, refused_records=("r1",)), QUICK), True),
        (look(MemberEffects("m0", refused=1, refused_records=("r1",)), MemberEffects("m1", refused=1)), True),
        (look(MemberEffects("m0", refused=2, refused_records=("r1", "r2"))), False),
        (look(MemberEffects("m0", refused=1, done=1, refused_records=("r1",), done_after_refusal=1)), False),
        (look(QUICK), False),
    ],
)
def test_poison_is_one_record_and_never_done(seen: EffectsSnapshot, bit: bool) -> None:
    """One record was refused whenever it came; a second one, or one that was done after all, is something else."""
    assert handler_evidence.record_poisoned(seen).bit is bit
