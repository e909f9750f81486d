"""Where Spark is: which masters are known, and what is set for one on this machine and for one elsewhere."""

from __future__ import annotations

import pytest

from kafka_trial.cluster.spark_java import spark_environment
from kafka_trial.errors import InputError
from kafka_trial.judge.spark_session import check_master


@pytest.mark.parametrize(
    "master",
    ["local", "local[4]", "local[*]", "spark://h:7077", "spark://a:1,b:2", "yarn", "k8s://https://h:6443", None],
)
def test_masters(master: str | None) -> None:
    """What Spark knows is let through."""
    check_master(master)


@pytest.mark.parametrize("master", ["", "spark:/h:7077", "spark://h", "mesos://h:5050", "local[]", "yarn-client"])
def test_no_masters(master: str) -> None:
    """Anything else is refused with what would be one, before Java is started for a minute."""
    with pytest.raises(InputError, match="Valid: local"):
        check_master(master)


def test_elsewhere_nothing_is_bound_to_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors on other machines must reach the driver, and have a Python of their own."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    environment = spark_environment(on_loopback=False)
    assert (environment["PYSPARK_PYTHON"], "SPARK_LOCAL_IP" in environment) == ("/opt/python", False)
    assert spark_environment()["SPARK_LOCAL_IP"] == "127.0.0.1"
