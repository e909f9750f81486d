"""More consumers than a machine carries: in batches, with one record of them all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from orjson import dumps, loads

from kafka_trial.registry import find_consumer
from kafka_trial.upgrade.batches import combined, in_batches
from kafka_trial.upgrade.cluster_state import CLUSTER, Loss
from kafka_trial.upgrade.record import UpgradeRecord
from kafka_trial.upgrade.record_file import as_table, read_record, write_record
from kafka_trial.upgrade.record_page import page_of_upgrade
from kafka_trial.upgrade.request import make_upgrade_request
from kafka_trial.upgrade.successors import Chain
from upgrade_records import ALL_GO, ORDERS, STAGES, go

NAMES = ["python-at-least-once", "kafka-python-at-least-once", "python-transactional"]
FOLDERS = ["batch-1", "batch-2"]


@pytest.mark.parametrize(
    ("most", "batches"),
    [(1, [[0], [1], [2]]), (2, [[0], [1, 2]]), (3, [[0, 1, 2]]), (40, [[0, 1, 2]])],
)
def test_consumers_go_in_batches(most: int, batches: list[list[int]], tmp_path: Path) -> None:
    """None is left out; each batch has a folder of its own, unless it is the only one."""
    chains = [Chain(find_consumer(name)) for name in NAMES]
    request = make_upgrade_request("3.9.2", "4.3.1", chains, seed=1, out=tmp_path)
    found = list(in_batches(request, most))
    assert [list(one.specs) for one in found] == [[NAMES[number] for number in batch] for batch in batches]
    folders = [tmp_path / f"batch-{number}" for number in range(1, len(batches) + 1)]
    assert [one.out for one in found] == (folders if len(batches) > 1 else [tmp_path])


def stock(**changes: object) -> UpgradeRecord:
    """The record of a second batch with another consumer: a go in every stage, but for the changes."""
    rows = [go(stage.name, subject) for stage in STAGES for subject in ("", "stock")]
    return replace(ALL_GO, consumers=[replace(ORDERS, name="stock")], **({"outcomes": rows} | changes))


def test_the_record_of_all_has_the_rows_of_each(tmp_path: Path) -> None:
    """With their run folders, as long as all took together; its page leads to theirs."""
    whole = combined([ALL_GO, stock()], FOLDERS)
    assert (whole.outcome, whole.subjects, whole.lasted_s) == ("go", ["", "orders", "billing", "stock"], 360)
    runs = {row.subject: row.run for row in whole.rows if row.stage == STAGES[0].name}
    assert (runs["stock"].partition("/")[0], runs["orders"].partition("/")[0]) == ("batch-2", "batch-1")
    assert 'href="batch-2/index.html"' in page_of_upgrade(whole)
    write_record(whole, tmp_path)
    read = as_table(read_record(tmp_path / "upgrade.json"))
    assert loads(dumps(read)) == loads(dumps(as_table(whole)))


def test_what_one_batch_lacks_the_whole_lacks() -> None:
    """A loss of its cluster is one of the cluster; a stage that it did not come to is unknown."""
    lossy = [replace(STAGES[0], losses=[Loss(CLUSTER, "the committed offset of partition 0 is gone")]), *STAGES[1:]]
    assert combined([ALL_GO, stock(stages=lossy)], FOLDERS).rows[0].outcome == "no-go"
    short = [*STAGES[:-1], replace(STAGES[-1], lasted_s=None)]
    whole = combined([ALL_GO, stock(stages=short)], FOLDERS)
    assert (whole.outcome, whole.missing) == ("unknown", [STAGES[-1].name])
