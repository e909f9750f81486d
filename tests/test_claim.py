"""The claim's table in consumer.toml."""

from kafka_trial.claim import claim_problems


def test_a_sound_table_has_no_problems() -> None:
    """All keys, valid values."""
    table = {"delivery": "exactly-once", "order": "key", "commits": "monotonic", "fenced": True, "converge_within_s": 9}
    assert claim_problems(table) == []


def test_all_problems_are_listed_with_the_valid_choices() -> None:
    """A missing delivery, an unknown key, a wrong choice and a negative number: four sentences."""
    problems = claim_problems({"ordre": "key", "order": "total", "converge_within_s": -1})
    assert [problem.partition(" ")[2][:12] for problem in problems] == [
        "unknown key ",
        "delivery is ",
        "order = 'tot",
        "converge_wit",
    ]
