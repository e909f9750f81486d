"""Evidence of faults of handlers, judged from literal samples of what came to the sink."""

from __future__ import annotations

import pytest

from kafka_trial.nemesis import handler_evidence
from kafka_trial.nemesis.samples import EffectsSnapshot, MemberEffects, MemberStay, StaysSnapshot

S = 1_000_000_000


def look(*members: MemberEffects) -> EffectsSnapshot:
    return EffectsSnapshot(0, members)


WAITED = MemberEffects("m0", done=2, waiting=1, waited_s_max=2.4, done_s_min=2.0)
QUICK = MemberEffects("m1", done=5, waited_s_max=0.01, done_s_min=0.002)


@pytest.mark.parametrize(
    ("seen", "bit", "said"),
    [
        (look(WAITED), True, "waited for up to 2.40 s"),
        (look(MemberEffects("m0", waiting=1, waited_s_max=2.0)), True, "waited for up to 2.00 s"),
        (look(WAITED, QUICK), False, "done within 2 s (m1)"),
        (look(WAITED, MemberEffects("m1")), True, "effects of m0 waited for up to 2.40 s; none came of m1"),
        (look(WAITED, MemberEffects("m1", waiting=1, waited_s_max=0.5)), False, "no effect waited for 2 s of m1"),
        (look(MemberEffects("m0")), False, "no effect waited for 2 s of m0"),
        (look(), False, "nothing to slow"),
    ],
)
def test_slow_handlers_all_wait(seen: EffectsSnapshot, bit: bool, said: str) -> None:
    """One waited so long, and none was done sooner; of a member that had any, too. Idle members prove nothing."""
    found = handler_evidence.handlers_slow(seen, delay_s=2.0)
    assert (
        (found.took_effect, said in found.message) == (True, True)
        if bit
        else (not found.took_effect and said in found.message)
    )


def test_of_some_slow_handlers_others_may_be_quick() -> None:
    """Where only a few records are slow, one that waited is enough, and none is not."""
    both = MemberEffects("m0", done=9, waiting=1, waited_s_max=3.0, done_s_min=0.001)
    assert handler_evidence.some_handlers_slow(look(both), delay_s=2.0).took_effect
    assert not handler_evidence.some_handlers_slow(look(QUICK), delay_s=2.0).took_effect


@pytest.mark.parametrize(
    ("seen", "bit"),
    [
        (look(MemberEffects("m0", refused=3, refused_records=("r1",))), True),
        (look(MemberEffects("m0", refused=3, done=1, refused_records=("r1",))), False),
        (look(MemberEffects("m0", refused=3, refused_records=("r1",)), MemberEffects("m1")), True),
        (look(MemberEffects("m0", refused=3, refused_records=("r1",)), MemberEffects("m1", waiting=1)), False),
        (look(MemberEffects("m0"), MemberEffects("m1")), False),
        (look(), False),
    ],
)
def test_failing_handlers_do_nothing(seen: EffectsSnapshot, bit: bool) -> None:
    """One was refused, and none was done; of a member that had any, too."""
    assert handler_evidence.handlers_failing(seen).took_effect is bit


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
    assert handler_evidence.record_poisoned(seen).took_effect is bit


def stay(
    *, out_s: float | None = 10.0, waits_s: float | None = 0.2, kept_s: float | None = 8.0, alive: bool = True
) -> MemberStay:
    """A member that began to wait at `waits_s` and has left at `out_s`."""
    left, waits, kept = (None if at_s is None else round(at_s * S) for at_s in (out_s, waits_s, kept_s))
    return MemberStay("m0", alive, waits_since_ns=waits, kept_ns=kept, left_ns=left)


@pytest.mark.parametrize(
    ("stays", "bit", "said"),
    [
        ([stay()], True, "the poll interval of 10 s expired: m0 left"),
        ([MemberStay("m0", True, 0, kept_ns=9 * S, removed_ns=10 * S)], True, "m0 was removed"),
        ([MemberStay("m0", True, 0, 9 * S, left_ns=10 * S + 1, removed_ns=10 * S)], True, "m0 left"),
        ([stay(), stay(out_s=None)], False, "m0 stayed in its group: it polls while its handler waits"),
        ([stay(out_s=5.1)], False, "m0 was out of its group after 4.9 s of waiting"),
        ([stay(out_s=5.2)], True, "expired"),
        ([stay(waits_s=None)], False, "m0 had no effect that waited"),
        ([stay(alive=False)], False, "m0 ended, or was started again"),
        ([stay(kept_s=4.0)], False, "m0 was out of its group, but without a heartbeat in the 6 s before"),
        ([stay(kept_s=None)], False, "without a heartbeat"),
        ([], False, "nobody"),
    ],
)
def test_a_poll_interval_expires_where_its_member_leaves_for_it(stays: list[MemberStay], bit: bool, said: str) -> None:
    """It lived, its effect waited for half an interval or more, and its heartbeats had gone on: then it was out."""
    found = handler_evidence.poll_interval_expired(StaysSnapshot(0, tuple(stays)), interval_s=10.0, session_s=6.0)
    assert found.took_effect is bit
    assert said in found.message


def test_a_poll_interval_that_nobody_knows_does_not_expire() -> None:
    """The offsets log had none of the group's members."""
    found = handler_evidence.poll_interval_expired(StaysSnapshot(0, (stay(),)), interval_s=None, session_s=None)
    assert (found.took_effect, found.message) == (False, "the brokers were told of no poll interval that could expire")
