"""At each hop that refuses: the record that preflight says passes does, and one byte more is refused there.

Where requests and responses are compared preflight counts upwards, by up to 600 bytes: so far above it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka_trial.preflight.answer import name_of
from lab.cases.refusing_hops import CELLS, STORED, HopCell, one_broker, predicted, refusing, way_of

pytestmark = [pytest.mark.cluster, pytest.mark.rotates(together="refusing hops")]

Send = Callable[[HopCell, int], str]


@pytest.fixture(scope="module")
def send() -> Iterator[Send]:
    """What sends a record to one broker with limits of its own."""
    with one_broker() as cluster, way_of(cluster) as sends:
        yield sends


@pytest.mark.parametrize("cell", CELLS, ids=[cell.hop for cell in CELLS])
def test_a_record_just_over_the_limit_is_refused_by_the_hop_that_is_named(cell: HopCell, send: Send) -> None:
    """Preflight names it before; who refuses says which setting it was."""
    passes_bytes = predicted(cell).record_limit_bytes
    over_bytes = passes_bytes + cell.slack_bytes + 1
    named = predicted(cell, over_bytes).refused_by
    assert named is not None
    assert name_of(named) == cell.hop
    assert send(cell, passes_bytes) == STORED
    assert refusing(cell, send(cell, over_bytes)) == cell.hop
