"""What CI takes from `ci/`: the action, the template and the image call what there is, and keep the status."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from docker import DockerClient
from docker.errors import BuildError

from kafka_trial import __version__
from kafka_trial.cli import _parser
from kafka_trial.cluster.user_cache import cache_folder
from kafka_trial.registry import CHECKOUT
from python_image import python_image

CI = CHECKOUT / "ci"
ACTION: dict[str, Any] = yaml.safe_load((CI / "github" / "action.yml").read_text())
GITLAB = CI / "gitlab" / "kafka-trial.yml"
JOB: dict[str, Any] = yaml.safe_load(GITLAB.read_text())[".kafka-trial"]
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SHELL = {
    "github": [step["run"] for step in STEPS if "run" in step],
    "gitlab": ["\n".join([*JOB["before_script"], *JOB["script"]])],
}
DOCKERFILE = (CI / "Dockerfile").read_text().replace("\\\n", " ")
COPIED = [source for line in re.findall(r"^COPY (.+) \S+$", DOCKERFILE, re.MULTILINE) for source in line.split()]


IMAGE = {"github": "IMAGE", "gitlab": "CONSUMER_IMAGE"}  # the variable that names one; empty: none


def certify_line(ci: str, *, image: bool) -> list[str]:
    """Returns the words of the command of ours in a file, the shell's variables as they stand."""
    (line,) = re.findall(
        r'^(?:"\S+" )?"\S+/bin/kafka-trial" (.+) \|\| status=\$\?$', "\n".join(SHELL[ci]), re.MULTILINE
    )
    return shlex.split(re.sub(r"\$\{(\w+):\+(.+?)\}", lambda found: found[2] if image else "", line))


@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("ci", SHELL)
def test_the_command_is_one_of_ours(ci: str, image: bool) -> None:
    """All its options exist; nothing else of kafka-trial is called."""
    options = _parser().parse_args(certify_line(ci, image=image))
    assert (options.verb, options.consumer, options.budget, options.out) == ("certify", "$CONSUMER", "$BUDGET", "$OUT")
    assert options.consumer_image == (f"${IMAGE[ci]}" if image else None)
    assert "\n".join(SHELL[ci]).count("bin/kafka-trial") == 1


@pytest.mark.parametrize("script", [*SHELL["github"], *SHELL["gitlab"], (CI / "install.sh").read_text()])
def test_the_shell_parts_are_shell(script: str) -> None:
    """By `bash -n`."""
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def job_of(ci: str, tmp_path: Path, status: int = 0, **words: str) -> subprocess.CompletedProcess[str]:
    """Runs the job's last script, where `kafka-trial` prints its arguments and ends with a status."""
    for folder in ("bin", ".venv/bin"):
        command = tmp_path / "kafka-trial" / folder / "kafka-trial"
        command.parent.mkdir(parents=True)
        command.write_text(f'#!/bin/sh\nprintf "%s|" "$@"\nexit {status}\n')
        command.chmod(0o755)
    words = {"CONSUMER": "my consumer.toml", IMAGE[ci]: "", "BUDGET": "90s", "OUT": "out", **words}
    places = {"RUNNER_TEMP": str(tmp_path), "place": str(tmp_path / "kafka-trial")}
    script = SHELL["github"][-1] if ci == "github" else JOB["script"][-1]
    command = ["bash", "-eo", "pipefail", "-c", script]
    environment = os.environ | places | words
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("status", "word"), [(0, "pass: "), (1, "fail: "), (4, "unknown: "), (2, ""), (130, "")])
@pytest.mark.parametrize("ci", SHELL)
def test_the_job_ends_as_certify_does(ci: str, status: int, word: str, tmp_path: Path) -> None:
    """Fail and unknown both fail it, in other words; what was asked goes to the command as it is."""
    done = job_of(ci, tmp_path, status)
    assert done.returncode == status
    assert done.stdout.startswith("certify|--consumer|my consumer.toml|--budget|90s|--retry-unknown|1|--out|out|")
    assert [one for one in ("pass: ", "fail: ", "unknown: ") if one in done.stdout] == [word] * bool(word)


@pytest.mark.parametrize("ci", SHELL)
def test_an_image_goes_to_the_command_as_it_is(ci: str, tmp_path: Path) -> None:
    """As one word."""
    image = "team/orders:1.4 and more"
    done = job_of(ci, tmp_path, **{IMAGE[ci]: image})
    assert done.stdout.startswith(
        f"certify|--consumer|my consumer.toml|--consumer-image|{image}|--budget|90s|--retry-unknown|1|"
    ), done


def test_what_is_kept_between_jobs_is_what_the_harness_and_pip_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The per-user cache where it is, or where the job has put it."""
    (cached,) = [step["with"]["path"].split() for step in STEPS if step.get("uses", "").startswith("actions/cache@")]
    for variable in ("KAFKA_TRIAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    assert [Path(place).expanduser() for place in cached] == [cache_folder(), Path.home() / ".cache" / "pip"]
    kept = [f"$CI_PROJECT_DIR/{place}" for place in JOB["cache"]["paths"]]
    assert kept == [JOB["variables"]["KAFKA_TRIAL_CACHE"], JOB["variables"]["PIP_CACHE_DIR"]]
    monkeypatch.setenv("KAFKA_TRIAL_CACHE", kept[0])
    assert cache_folder() == Path(kept[0])


def test_the_certificate_is_kept_whatever_came_out() -> None:
    """The whole folder."""
    assert (STEPS[-1]["if"], STEPS[-1]["with"]["path"]) == ("always()", "${{ inputs.out }}")
    assert (JOB["artifacts"]["when"], JOB["artifacts"]["paths"]) == ("always", ["$OUT"])


def test_every_input_of_the_action_is_used() -> None:
    """And none that it does not have."""
    used = re.findall(r"\$\{\{ inputs\.([\w-]+) \}\}", (CI / "github" / "action.yml").read_text())
    assert set(used) == set(ACTION["inputs"])


def test_the_examples_of_the_page_fit() -> None:
    """Inputs, file, job and variables are those that there are."""
    page = (CHECKOUT / "docs" / "running.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    github, gitlab = map(yaml.safe_load, blocks)
    (step,) = [step for step in github["jobs"]["consumer"]["steps"] if "kafka-trial" in step.get("uses", "")]
    assert step["uses"].partition("@")[0] == "OWNER/kafka-trial/ci/github"
    assert {"consumer"} <= step["with"].keys() <= ACTION["inputs"].keys()
    assert (CHECKOUT / gitlab["include"][0]["file"], gitlab["consumer"]["extends"]) == (GITLAB, ".kafka-trial")
    assert gitlab["consumer"]["variables"].keys() <= {*JOB["variables"], "KAFKA_TRIAL_GIT"}


def test_what_is_installed_from_is_there() -> None:
    """The locks that the script names, each of which the image has too; every file that it copies."""
    locks = re.findall(r"-r \"\$from/(\S+)\"", (CI / "install.sh").read_text())
    assert locks == ["ci/build.lock", "ci/requirements.lock"]
    assert [name for name in [*COPIED, *locks] if not (CHECKOUT / name).exists()] == []
    assert {*locks, "ci/install.sh"} <= set(COPIED)
    assert "--hash=sha256:" in (CHECKOUT / locks[1]).read_text()


def copy_as_it_is(source: Path, to: Path) -> None:
    """Copies a file or a folder as `COPY` of a Dockerfile does: links stay links."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, to, symlinks=True)
    else:
        shutil.copy(source, to)


def test_what_the_image_copies_makes_a_whole_wheel(tmp_path: Path) -> None:
    """With suites, reference consumers and what `demo` convicts."""
    for name in COPIED:
        copy_as_it_is(CHECKOUT / name, tmp_path / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    listed = subprocess.run([sys.executable, "-m", "zipfile", "-l", wheel], capture_output=True, text=True, check=True)
    for name in ("suites/test_control.py", "faulty/commits-backwards/sin.diff", "report/certificate.schema.json"):
        assert f"kafka_trial/{name} " in listed.stdout


@pytest.mark.rotates(together="dear")
def test_the_image_is_built_and_judges(engine: DockerClient, tmp_path: Path) -> None:
    """From this machine's Python, for want of a registry: it installs itself by the locks, and judges a stored run."""
    for name in [*COPIED, "ci/Dockerfile"]:
        copy_as_it_is(CHECKOUT / name, tmp_path / name)
    image = _image_of_ours(engine, tmp_path)
    try:
        stored = {str(CHECKOUT / "fixtures" / "histories" / "member-killed"): {"bind": "/stored", "mode": "ro"}}
        judges = "cp -r /stored /tmp/run && kafka-trial --version && kafka-trial check /tmp/run"
        command = {"entrypoint": "bash", "command": ["-c", judges], "volumes": stored, "remove": True}
        said = engine.containers.run(image, **command).decode()
        assert said.startswith(f"kafka-trial {__version__}\nPASS: "), said
    finally:
        engine.images.remove(image, force=True)


def _image_of_ours(engine: DockerClient, context: Path) -> str:
    """Builds ci/Dockerfile with this machine's network, on which pip finds its index; returns the image."""
    words = {"dockerfile": "ci/Dockerfile", "buildargs": {"BASE": python_image(engine)}, "network_mode": "host"}
    try:
        image, _ = engine.images.build(path=str(context), rm=True, forcerm=True, **words)
    except BuildError as error:
        raise AssertionError(
            "".join(str(line.get("stream") or line.get("error") or "") for line in error.build_log)
        ) from error
    return str(image.id)
