"""Levels of features: the bytes that ask for them, and what an answer refuses."""

from __future__ import annotations

import pytest

from kafka_trial.kafka_protocol.cluster_changes import FeatureUpdate, Update, refusals, request_body
from kafka_trial.kafka_protocol.connection import NoAnswerError
from kafka_trial.kafka_protocol.primitives import Reader

GROUP = FeatureUpdate("group.version", 1)
TRANSACTION = FeatureUpdate("transaction.version", 2, Update.SAFE_DOWNGRADE)


def test_a_request_is_in_the_bytes_of_v1_and_v2() -> None:
    """Time-out, then each feature with its level and the kind of update, then whether it is only validated."""
    body = request_body([GROUP, TRANSACTION], validate_only=True, within_s=10.0)
    assert body == (
        b"\x00\x00\x27\x10"  # 10000 ms
        b"\x03"  # two updates
        b"\x0egroup.version\x00\x01\x01\x00"  # level 1, UPGRADE, no tags
        b"\x14transaction.version\x00\x02\x02\x00"  # level 2, SAFE_DOWNGRADE
        b"\x01\x00"  # validate only, no tags
    )
    assert request_body([GROUP], validate_only=False, within_s=1.0).endswith(b"\x01\x00\x00\x00")


def answered(raw: bytes, *, version: int) -> list[str]:
    """Returns what an answer refuses; all of it is read."""
    reader = Reader(raw, flexible=True)
    found = refusals(reader, [GROUP, TRANSACTION], version=version)
    reader.tags()
    reader.end()
    return found


TAKEN = b"\x00\x00\x00\x00\x00\x00\x00"  # no throttling, no error, no message
WRONG = b"\x00\x5f\x06Nope!"  # INVALID_UPDATE_VERSION
ONE_OF_TWO = b"\x03\x0egroup.version\x00\x00\x00\x00\x14transaction.version" + WRONG + b"\x00"


@pytest.mark.parametrize(
    ("raw", "version", "wanted"),
    [
        (TAKEN + b"\x00", 2, []),
        (TAKEN + b"\x01\x00", 1, []),
        (
            b"\x00\x00\x00\x00" + WRONG + b"\x00",
            2,
            ["group.version 1, transaction.version 2 was refused, INVALID_UPDATE_VERSION (95): Nope!"],
        ),
        (TAKEN + ONE_OF_TWO + b"\x00", 1, ["transaction.version 2 was refused, INVALID_UPDATE_VERSION (95): Nope!"]),
        (
            b"\x00\x00\x00\x00\x00\x1f\x00\x01\x00",
            1,
            ["group.version 1, transaction.version 2 was refused, CLUSTER_AUTHORIZATION_FAILED (31): no reason given"],
        ),
    ],
    ids=["taken, v2", "taken, v1", "refused together", "one refused", "not allowed"],
)
def test_what_is_refused_is_said_by_feature(raw: bytes, version: int, wanted: list[str]) -> None:
    """Of v1 each by itself; of v2 none is taken where one is refused."""
    assert answered(raw, version=version) == wanted


@pytest.mark.parametrize("code", [b"\x00\x07", b"\x00\x0d", b"\x00\x29"])
def test_without_a_controller_nothing_is_known(code: bytes) -> None:
    """Neither taken nor refused: whoever asked asks again."""
    with pytest.raises(NoAnswerError) as refused:
        answered(b"\x00\x00\x00\x00" + code + b"\x00\x01\x00", version=1)
    assert refused.value.code == int.from_bytes(code)
