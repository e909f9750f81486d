"""A certificate is of one image: another that has its name meanwhile does not go on there."""

from __future__ import annotations

import io
import secrets
import tarfile
from pathlib import Path

import pytest
from docker import DockerClient

from kafka_trial.errors import InputError
from kafka_trial.registry import find_consumer
from kafka_trial.report.certificate import write_certificate
from kafka_trial.trial.certify import CertifyRequest, begin_certificate


def test_another_image_of_the_same_name_does_not_go_on_there(
    engine: DockerClient, engine_host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same does; of the other one both are named, and what to do."""
    monkeypatch.setenv("DOCKER_HOST", engine_host)
    name = f"kafka-trial-test/{secrets.token_hex(4)}:1"
    asked = CertifyRequest(find_consumer("python-at-least-once"), tmp_path, suites=["control"], image=name)
    made = []
    try:
        for content in ("one", "two"):
            engine.api.import_image_from_data(_archive(content), repository=name.partition(":")[0], tag="1")
            made.append(str(engine.images.get(name).id))
            if content == "one":
                write_certificate(begin_certificate(asked), tmp_path)
                assert begin_certificate(asked).consumer["image"] == {"name": name, "id": made[0]}
        with pytest.raises(InputError, match="Name another --out") as caught:
            begin_certificate(asked)
        assert f"of another image ({name}, {made[0]}; now asked for: {name}, {made[1]})" in str(caught.value)
    finally:
        for image in made:
            engine.images.remove(image, force=True)


def _archive(content: str) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        entry = tarfile.TarInfo("content")
        entry.size = len(content)
        file.addfile(entry, io.BytesIO(content.encode()))
    return archive.getvalue()
