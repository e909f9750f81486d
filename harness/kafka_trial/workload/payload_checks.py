"""What is wrong with a team's own payload: every problem of its files, and loads that cannot be played with it.

All of it is told before anything starts. A template is rendered once, and its record read back as a consumer would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

from kafka_trial.history.record_ids import record_id
from kafka_trial.scenario import FURTHER_NAME, FURTHER_NAME_MAX, Load, Scenario
from kafka_trial.workload.payload import EXAMPLE, PayloadFiles, is_json, listed_files, sample_files, template_text
from kafka_trial.workload.template import Template, template_problems
from kafka_trial.workload.workload import ID_HEADER

VALUE_BYTES_MAX: Final = 12 * 1024 * 1024 - 64 * 1024  # the topic takes 12 MiB: key, headers and batch are in it too
HEADERS_BYTES_MAX: Final = 16 * 1024
SAMPLES_BYTES_MAX: Final = 50_000_000
OPENING_BYTES_MAX: Final = 320_000_000  # of values in an opening burst: it is to be drained in half a minute
DEFAULT_SIZES: Final = (Load.size_bytes_min, Load.size_bytes_max)  # of a scenario that is not about sizes


def payload_problems(files: PayloadFiles, *, json_path: str | None = None) -> list[str]:
    """Returns everything that is wrong with a payload, as sentences. `json_path`: where a template must put the id."""
    problems = _problems(files, json_path, "payload")
    for name, of_topic in files.topics.items():
        if not re.fullmatch(FURTHER_NAME, name):
            told = f"it has 1 to {FURTHER_NAME_MAX} of a-z, 0-9 and -"
            problems.append(f"[payload.topics.{name}] is no name of a topic: {told}")
        problems += _problems(of_topic, json_path, f"payload.topics.{name}")
    return problems


def _problems(files: PayloadFiles, json_path: str | None, section: str) -> list[str]:
    problems = _header_problems(files, f"[{section}.headers]")
    if files.template is not None and files.samples is not None:
        return [*problems, f"[{section}] has both template and samples; a record is made of one of them: take one out"]
    if files.template is not None:
        problems += _template_file_problems(files.template, json_path, f"[{section}] template {files.template}")
    if files.samples is not None:
        problems += _samples_problems(files.samples, f"[{section}] samples {files.samples}")
    return problems


def _header_problems(files: PayloadFiles, here: str) -> list[str]:
    problems = list[str]()
    for name, text in files.headers.items():
        if name in (ID_HEADER, files.id_header):
            problems.append(f"{here} {name} is the header of the id, which every record has; take it out")
        if not name:
            problems.append(f"{here} has a header without a name; name it, or take it out")
        problems += template_problems(text, place=f"{here} {name}", padded=False)
    size_bytes = sum(len(name.encode()) + len(text.encode()) for name, text in files.headers.items())
    if size_bytes > HEADERS_BYTES_MAX:
        problems.append(f"{here} has {size_bytes} bytes, at most {HEADERS_BYTES_MAX} are sent; shorten them")
    return problems


def _template_file_problems(file: Path, json_path: str | None, place: str) -> list[str]:
    try:
        if file.stat().st_size > VALUE_BYTES_MAX:
            return [f"{place} has {file.stat().st_size} bytes, a record at most {VALUE_BYTES_MAX}; shorten it"]
        text = template_text(file)
    except OSError as error:
        return [f"{place} cannot be read: {error.strerror}; name a text file, relative to consumer.toml"]
    except UnicodeDecodeError as error:
        return [f"{place} is not UTF-8 ({error.reason} at byte {error.start}); bytes as they are go under samples"]
    if not text:
        return [f"{place} is empty; write what a record holds"]
    return template_problems(text, place=place) or _rendered_problems(file, text, place, json_path)


def _rendered_problems(file: Path, text: str, place: str, json_path: str | None) -> list[str]:
    """Renders one record, and reads it back."""
    value = Template(text, seed=0, as_json=is_json(file)).render(EXAMPLE)
    if len(value) > VALUE_BYTES_MAX:
        return [f"{place} makes a record of {len(value)} bytes, at most {VALUE_BYTES_MAX} are sent; shorten it"]
    if is_json(file):
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError as error:
            return [f"{place} does not become JSON: {error}; mend it, or give it another ending than .json"]
    if json_path is None:
        return []
    found = record_id((), value, field=json_path)
    if found == EXAMPLE.id:
        return []
    seen = "finds nothing there" if found is None else f"finds {found[:80]!r} there"
    return [f"[identity] json_path = {json_path!r} {seen}, not the id, in {place}; put ${{id}} there"]


def _samples_problems(place: Path, here: str) -> list[str]:
    try:
        folders = [one.name for one in listed_files(place) if one.is_dir()]
        sizes = {file: file.stat().st_size for file in sample_files(place)}
        for file in sizes:
            file.open("rb").close()
    except OSError as error:
        where = f"{here} ({error.filename})" if error.filename != str(place) else here
        return [f"{where} cannot be read: {error.strerror}; name a file or a folder, relative to consumer.toml"]
    problems = [f"{here} holds the folder {name}; only files directly in it are sent: move it" for name in folders]
    if not sizes:
        problems.append(f"{here} holds no file; put values into it, a file each")
    for file, size_bytes in sizes.items():
        if not size_bytes:
            problems.append(f"{file} is empty, and no record is; take it out of the samples")
        if size_bytes > VALUE_BYTES_MAX:
            problems.append(f"{file} has {size_bytes} bytes, a record at most {VALUE_BYTES_MAX}; take it out")
    if (whole := sum(sizes.values())) > SAMPLES_BYTES_MAX:
        said = f"{here} has {whole} bytes in {len(sizes)} files"
        problems.append(f"{said}, at most {SAMPLES_BYTES_MAX} are kept with a run; leave some of them out")
    return problems


def load_problem(files: PayloadFiles, scenario: Scenario) -> str | None:
    """Returns why the loads of a scenario cannot be played with these files, which have no problems; None where they
    can."""
    further = [one.name for one in scenario.further_topics]
    without, unused = (", ".join(sorted(left)) for left in ({*further} - {*files.topics}, {*files.topics} - {*further}))
    if without and unused:  # one of them may be misspelt
        return f"its further topics {without} have no payload in [payload.topics], which has {unused}"
    problems = (
        _load_problem(files.of_topic(name), load) for name, load in zip(["", *further], scenario.loads, strict=True)
    )
    return next(filter(None, problems), None)


def _load_problem(files: PayloadFiles, load: Load) -> str | None:
    """Returns why a load cannot be played with these files.

    Where a scenario asks for sizes of its own, records without these sizes would not be what it is about.
    """
    if files.template is None and files.samples is None:
        return None
    name = "samples" if files.template is None else "template"
    sizes, padded = _value_sizes(files)
    asked = (load.size_bytes_min, load.size_bytes_max)
    if asked != DEFAULT_SIZES and not _within(sizes, asked, padded=padded):
        said = f"its load asks for values of {asked[0]} to {asked[1]} bytes, and by [payload] {name} they have"
        its = f"at least {min(sizes)}" if padded else f"{min(sizes)} to {max(sizes)}"
        return f"{said} {its}; write a template with ${{padding}}, or leave this scenario out"
    mean_bytes = max(sum(sizes) / len(sizes), sum(asked) / 2 if padded else 0)
    burst_bytes = round(load.opening_burst * mean_bytes)
    if burst_bytes > OPENING_BYTES_MAX:
        said = f"by [payload] {name} its opening burst of {load.opening_burst} records has {burst_bytes} bytes"
        return f"{said}, at most {OPENING_BYTES_MAX} are sent; make them smaller, or choose a scenario that sends fewer"
    return None


def _within(sizes: Sequence[int], asked: tuple[int, int], *, padded: bool) -> bool:
    return min(sizes) <= asked[0] if padded else asked[0] <= min(sizes) <= max(sizes) <= asked[1]


def _value_sizes(files: PayloadFiles) -> tuple[Sequence[int], bool]:
    """Returns the sizes of values in bytes, and whether they are the least, for there is padding."""
    if files.template is None:
        return [file.stat().st_size for file in sample_files(files.samples or Path())], False
    template = Template(template_text(files.template), seed=0, as_json=is_json(files.template))
    return [len(template.render(EXAMPLE))], template.padded
