"""The toxic that reads Kafka's frames: its own tests in Go, and how it is put on the proxies of a lane."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_trial.cluster.cluster import Lane
from kafka_trial.cluster.kafka_cut import Arming, LaneCuts, cuts_on
from kafka_trial.cluster.toxiproxy import BUILD, find_go, is_ours, toxiproxy_there, toxiproxy_version
from kafka_trial.errors import StartError, UnjudgeableError

LANE = Lane(0, "127.0.0.1", {0: "k-b0-lane0", 1: "k-b1-lane0"}, {0: 1, 1: 2})


def go(*words: str) -> str:
    """Runs Go on the sources of the server."""
    environment = os.environ | {"GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    done = subprocess.run(
        [find_go(), *words], cwd=BUILD, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.cluster
@pytest.mark.rotates
@pytest.mark.parametrize("words", [("vet", "./..."), ("test", "./...")], ids=" ".join)
def test_the_toxic_passes_its_own_tests(words: tuple[str, ...]) -> None:
    """Odd chunks, pairing, hold and heal, close, removal while holding, arming behind a stalled toxic, mid-frame."""
    assert go(*words) == ""


class Api:
    """Toxiproxy's calls on toxics, without a server; `knows` the toxic or refuses it, as a plain one does."""

    def __init__(self, *, knows: bool = True) -> None:
        self.knows = knows
        self.there: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.calls: list[tuple[str, str, str]] = []

    def add_toxic(self, proxy: str, name: str, kind: str, stream: str, attributes: Mapping[str, Any]) -> None:
        if not self.knows:
            raise UnjudgeableError(f"400: invalid toxic type {kind}")
        self.calls.append(("add", proxy, name))
        self.there[proxy, name] = attributes

    def remove_toxic(self, proxy: str, name: str) -> None:
        if self.there.pop((proxy, name), None) is not None:
            self.calls.append(("remove", proxy, name))

    def update_toxic(self, proxy: str, name: str, attributes: Mapping[str, Any]) -> None:
        self.calls.append(("update", proxy, name))
        self.there[proxy, name] = {**self.there[proxy, name], **attributes}

    def toxic(self, proxy: str, name: str) -> Mapping[str, Any] | None:
        found = self.there.get((proxy, name))
        return None if found is None else {"attributes": found}


def test_each_proxy_of_a_lane_gets_its_pair_and_loses_it_again() -> None:
    """Requests first, one lane for all, a pair of its own for each; what a killed trial left is taken away first."""
    api: Any = Api()
    api.there["k-b1-lane0", "cut-answers"] = {}
    with cuts_on(api, [LANE]):
        requests = [api.there[proxy, "cut-requests"] for proxy in LANE.proxies.values()]
        answers = [api.there[proxy, "cut-answers"] for proxy in LANE.proxies.values()]
        assert [one["pair"] for one in requests] == [one["pair"] for one in answers]
        assert (len({one["pair"] for one in requests}), len({one["lane"] for one in requests + answers})) == (2, 1)
    assert api.there == {}
    adds = [name for call, proxy, name in api.calls if (call, proxy) == ("add", "k-b0-lane0")]
    assert adds == ["cut-requests", "cut-answers"]


def test_a_plain_toxiproxy_is_told_before_a_trial_begins() -> None:
    """With what to do; nothing is left on it."""
    api: Any = Api(knows=False)
    with pytest.raises(StartError, match=r"cuts need the Toxiproxy that kafka-trial builds.*KAFKA_TRIAL_TOXIPROXY"):
        cuts_on(api, [LANE]).__enter__()


def evidence(arming: str, matched: int) -> dict[str, Any]:
    event = {"arming": arming, "connection": "k-b1-lane0@ab#3", "api": 8, "version": 9, "correlation_id": 5}
    times = {"seen_ns": 1, "hit_ns": 2, "gone_ns": 0, "ended": "", "alike": 0}
    return {"matched": matched, "connections": 2, "strange": 0, "events": [{**event, **times}]}


def test_what_an_earlier_arming_saw_is_not_this_ones() -> None:
    """A cut that was never armed shows nothing, whatever was cut before on the lane."""
    api: Any = Api()
    with cuts_on(api, [LANE]):
        cuts = LaneCuts(api, LANE)
        with cuts.armed(Arming("now", 8, 1, "before", "hold")):
            api.there["k-b0-lane0", "cut-requests"] |= {"evidence": evidence("now", 4)}
            seen, other = cuts.seen("now"), cuts.seen("earlier")
    assert seen.cut is not None
    assert (seen.matched, seen.cut.broker, seen.cut.correlation_id, seen.cut.hit_ns) == (4, 1, 5, 2)
    assert (other.matched, other.cut) == (0, None)


def test_a_server_on_path_that_cannot_cut_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is the right version, and plain; the user's word is taken all the same."""
    plain = tmp_path / "toxiproxy-server"
    plain.write_text("#!/bin/sh\necho toxiproxy-server version 2.12.0\n")
    plain.chmod(0o755)
    monkeypatch.delenv("KAFKA_TRIAL_TOXIPROXY", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert (toxiproxy_version(plain), is_ours(plain)) == ("2.12.0", False)
    assert toxiproxy_there() != plain
    monkeypatch.setenv("KAFKA_TRIAL_TOXIPROXY", str(plain))
    assert toxiproxy_there() == plain
