"""What a member is told when it is started: the words behind the placeholders, and its environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_trial.cluster.cluster import Lane
from kafka_trial.cluster.java import find_java
from kafka_trial.cluster.kafka_jars import class_path
from kafka_trial.consumers.spec import ConsumerSpec, fill, used_placeholders

# What a command needs of the caller's environment to run at all; everything else is [env] and pass_env.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class LaunchContext:
    """What the members are told: the words behind the placeholders. `sink_url` is asked per member."""

    topic: str
    group: str
    seed: int
    kafka_version: str
    members: int
    sink_url: Callable[[str], str] = lambda member: ""


def sink_topic(spec: ConsumerSpec, launch_context: LaunchContext) -> str | None:
    """Returns the name of the topic that the consumer's output goes to; None where it goes elsewhere."""
    return fill(spec.sink_topic.name, _words_of_all(spec, launch_context)) if spec.evidence.sink == "topic" else None


def words(
    spec: ConsumerSpec, launch_context: LaunchContext, *, member: str, incarnation: int, lane: Lane, run_dir: Path
) -> dict[str, str]:
    """Returns the value of every placeholder that `spec` uses or may use, for one incarnation of a member.

    Raises:
        StartError: it uses {java} or {kafka_classpath} and they cannot be provided.
    """
    values = _words_of_all(spec, launch_context) | {
        "bootstrap": lane.bootstrap,
        "member": member,
        "incarnation": str(incarnation),
        "client_id": f"kt-{member}",
        "sink_url": launch_context.sink_url(member),
        "python": sys.executable,
        "run_dir": str(run_dir),
    }
    texts = [*spec.command, *spec.env.values(), spec.ready.http or ""]
    used = {name for text in texts for name in used_placeholders(text)}
    if "java" in used:
        values["java"] = str(find_java())
    if "kafka_classpath" in used:
        values["kafka_classpath"] = class_path(launch_context.kafka_version)
    return values


def _words_of_all(spec: ConsumerSpec, launch_context: LaunchContext) -> dict[str, str]:
    return {
        "group": launch_context.group,
        "topics": launch_context.topic,
        "members": str(launch_context.members),
        "seed": str(launch_context.seed),
        "protocol": spec.kafka.protocol,
        "session_timeout_ms": str(round(spec.kafka.session_timeout_s * 1000)),
        "poll_interval_ms": str(round(spec.kafka.poll_interval_s * 1000)),
        "kafka_version": launch_context.kafka_version,
    }


def environment(spec: ConsumerSpec, values: Mapping[str, str]) -> dict[str, str]:
    """Returns a member's environment: the little it inherits, pass_env, then [env]."""
    passed = {name: os.environ[name] for name in (*INHERITED, *spec.pass_env) if name in os.environ}
    return passed | {name: fill(text, values) for name, text in spec.env.items()}
