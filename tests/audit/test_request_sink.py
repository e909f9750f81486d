"""What may be asked of a sink, and what is told of words that make no sense; no password in any of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_trial.audit.request import NO_PASSWORD, NS_PER_S, Identity, Sink, make_audit_request, sqlite_file
from kafka_trial.errors import InputError

WORDS: dict[str, Any] = {"bootstrap": "h:9092", "topic": "t", "group": "g", "from": "12h", "until": "now"}
POSTGRESQL = "postgresql://reader@db/billing"
QUERY = "select order_id, written_at from done"


def _asked(words: dict[str, Any]) -> Any:
    return make_audit_request(WORDS | words, now_ns=1_800_000_000 * NS_PER_S)


def test_ids_are_where_consumer_toml_has_them_unless_said() -> None:
    """In a sink as in the topic, unless said; JSON paths with or without their root."""
    plain, said = (
        _asked({"sink_topic": ["s", "s"]}),
        _asked({"sink_topic": ["s"], "id_field": "$.order.id", "id_header": "h"}),
    )
    other = _asked({"sink_topic": ["s"], "id_field": "id", "sink_id_field": "$.order.id"})
    assert (plain.identity, plain.sink) == (Identity("kt-id", "id"), Sink(("s",), Identity("kt-id", "id")))
    assert (said.identity, said.sink.identity) == (Identity("h", "order.id"), Identity("h", "order.id"))
    assert (other.identity, other.sink.identity) == (Identity("kt-id", "id"), Identity("kt-id", "order.id"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"sink_topic": ["s"], "sink_db": POSTGRESQL, "sink_query": QUERY}, "name one of them"),
        ({"sink_topic": ["s", "t"]}, "is the audited topic itself"),
        ({"sink_db": POSTGRESQL}, "belong together"),
        ({"sink_query": QUERY}, "belong together"),
        ({"sink_db": "mysql://db/billing", "sink_query": QUERY}, "'mysql' is no database that this version reads"),
        ({"sink_db": "billing.db", "sink_query": QUERY}, "'it' is no database"),
        ({"sink_db": "sqlite:////no/such.db", "sink_query": QUERY}, "there is no file /no/such.db"),
        ({"sink_db": "postgresql://reader:secret@db/billing", "sink_query": QUERY}, NO_PASSWORD),
        ({"sink_db": "postgresql://db/billing?password=secret", "sink_query": QUERY}, NO_PASSWORD),
        ({"id_field": "$.a[*]"}, "--id-field '$.a[*]': '[*]' is no step to one place"),
        ({"sink_topic": ["s"], "sink_id_field": "a..b"}, "--sink-id-field 'a..b': '..b' is no step to one place"),
        ({"sink_id_field": "a"}, "--sink-id-field says where ids are in a --sink-topic"),
    ],
)
def test_what_makes_no_sense_is_told(words: dict[str, Any], said: str) -> None:
    """Before anybody is asked, and without the password."""
    with pytest.raises(InputError) as told:
        _asked(words)
    assert (said in str(told.value), "secret" in str(told.value)) == (True, False)


def test_a_database_is_a_sink_with_its_question_in_the_facts() -> None:
    """What was asked can be asked again."""
    asked = _asked({"sink_db": POSTGRESQL, "sink_query": QUERY})
    assert (asked.sink.kind, asked.sink.name, asked.metadata["sink"]["query"]) == ("table", "billing", QUERY)


def test_three_slashes_are_relative_and_four_absolute() -> None:
    """As everywhere in such URLs."""
    assert [sqlite_file(url) for url in ("sqlite:///a/b.db", "sqlite:////a/b.db")] == [Path("a/b.db"), Path("/a/b.db")]
