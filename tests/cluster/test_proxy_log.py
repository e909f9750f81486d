"""The log of Toxiproxy: connections of one lane are counted from a given moment on."""

from __future__ import annotations

from pathlib import Path

from kafka_trial.cluster.toxiproxy import ProxyLog

LINE = '{"level":"info","name":"kt1-b0-lane%d","client":"127.0.0.1:%d","message":"%s"}\n'
LANE_0 = ["kt1-b0-lane0", "kt1-b1-lane0"]


def test_connections_of_a_lane_are_counted_from_now_on(tmp_path: Path) -> None:
    """Those before, those of other lanes, other lines and a line that is cut count for nothing."""
    path = tmp_path / "toxiproxy.log"
    path.write_text(LINE % (0, 1, "Accepted client"))
    log = ProxyLog.from_now(path)
    assert log.accepted(LANE_0) == 0
    later = [(0, 2, "Accepted client"), (1, 3, "Accepted client"), (0, 2, "Setup connection")]
    with path.open("a") as file:
        file.write("".join(LINE % one for one in later) + '{"message":"Accepted client","name":"kt1-b0-la')
    assert log.accepted(LANE_0) == 1


def test_where_there_is_no_log_nothing_is_counted(tmp_path: Path) -> None:
    """Not even zero."""
    assert ProxyLog.from_now(tmp_path / "none.log").accepted(LANE_0) is None
