"""A team's own text as a record: what is filled in, the same for the same seed, harmless inside JSON."""

from __future__ import annotations

import json
import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_trial.workload.template import KINDS, Template, template_problems
from kafka_trial.workload.workload import Op

OP = Op("r0000042", 42, "k7", None, 1024, 0.0, "steady")


def rendered(text: str, op: Op = OP, *, seed: int = 1, as_json: bool = False) -> str:
    return Template(text, seed=seed, as_json=as_json, pool="x" * 10_000).render(op).decode()


def test_every_placeholder_is_filled_in() -> None:
    """Those of the record with what it is, drawn ones with something of their kind; two dollars are one."""
    assert rendered("<a>$$5 ${id} ${key} ${number} ${time_ms}</a>") == "<a>$5 r0000042 k7 42 1767225600042</a>"
    assert uuid.UUID(rendered("${uuid}")).version == 4
    assert 3 <= int(rendered("${random_int:3:5}")) <= 5
    assert re.fullmatch("[0-9a-f]{16}", rendered("${random_hex:16}"))
    assert rendered("${random_choice:new:paid}") in ("new", "paid")
    assert [kind.example for name, kind in KINDS.items() if template_problems(kind.example, place="t")] == []


def test_a_record_without_a_key_has_none_there() -> None:
    """An empty text: what a placeholder stands for is always text."""
    assert rendered("[${key}]", OP._replace(key=None)) == "[]"


def test_the_seed_and_the_number_decide_what_is_drawn() -> None:
    """Same seed and record, same bytes, whatever was rendered before; another seed or another record, others."""
    text = "${uuid} ${random_int:1:1000000} ${random_hex:8} ${random_choice:a:b:c}"
    template, later = Template(text, seed=1), OP._replace(n=43)
    first, other = template.render(OP), template.render(later)
    assert (template.render(OP), Template(text, seed=1).render(later)) == (first, other)
    assert len({first, other, Template(text, seed=2).render(OP)}) == 3


def test_every_number_of_a_range_is_drawn() -> None:
    """Both ends are within."""
    template = Template("${random_int:-1:1}", seed=1)
    assert {template.render(OP._replace(n=n)) for n in range(100)} == {b"-1", b"0", b"1"}


@pytest.mark.parametrize("key", ["k7", "ключ"])
@pytest.mark.parametrize("size_bytes", [64, 1024, 5000])
def test_padding_fills_up_to_the_wanted_size(key: str, size_bytes: int) -> None:
    """In bytes of UTF-8; where the rest is longer already nothing is added."""
    template = Template("${id} ${key} ${padding}|", seed=1, pool="x" * 10_000)
    assert len(template.render(OP._replace(key=key, size_bytes=size_bytes))) == size_bytes
    assert rendered("0123456789${padding}", OP._replace(size_bytes=5)) == "0123456789"


@given(key=st.text(st.characters(exclude_categories=["Cs"])), seed=st.integers())
def test_a_json_template_is_json_whatever_the_key(key: str, seed: int) -> None:
    """What is filled in is escaped as inside a string, and read back as it was."""
    text = '{"id": "${id}", "key": "${key}", "n": ${number}, "of": "${random_choice:a"b:\\\\}", "pad": "${padding}"}'
    body = json.loads(rendered(text, OP._replace(key=key), seed=seed, as_json=True))
    assert (body["id"], body["key"], body["n"], body["of"] in ('a"b', "\\\\")) == ("r0000042", key, 42, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\nb $5", "t, line 2: a $ stands alone, or its brace is not closed; write $$ for a dollar, or ${id}"),
        ("${id", "t, line 1: a $ stands alone, or its brace is not closed; write $$ for a dollar, or ${id}"),
        ("${idd}", "t, line 1: unknown placeholder 'idd'. Did you mean 'id'? Valid: id, key, number, padding, "),
        ("${}", "t, line 1: unknown placeholder ''. Valid: id, key"),
        ("${id:3}", "t, line 1: ${id:3} is written as ${id}"),
        ("${random_int:5:1}", "t, line 1: ${random_int:5:1} is written as ${random_int:1:100}"),
        ("${random_int:1}", "t, line 1: ${random_int:1} is written as ${random_int:1:100}"),
        ("${random_hex:0}", "t, line 1: ${random_hex:0} is written as ${random_hex:16}"),
        ("${random_choice:a}", "t, line 1: ${random_choice:a} is written as ${random_choice:new:paid}"),
        ("${padding}${padding}", "t: ${padding} stands there 2 times; write it once"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, said: str) -> None:
    """The line, what is there, and how it is written."""
    (problem,) = template_problems(text, place="t")
    assert problem.startswith(said)


def test_all_that_is_wrong_is_told_and_nothing_of_what_is_right() -> None:
    """One sentence for each; JSON's braces and doubled dollars are none."""
    assert len(template_problems("$ ${x} ${y}", place="t")) == 3
    assert template_problems('{"a": {"b": "$$ ${id}"}}', place="t") == []
    assert "unknown placeholder 'padding'" in template_problems("${padding}", place="h", padded=False)[0]
