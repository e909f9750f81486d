"""The claim's table in consumer.toml."""

from kafka_trial.claim import claim_problems


def test_a_sound_table_has_no_problems() -> None:
    """All keys, valid values."""
    table = {"delivery": "exactly-once", "order": "key", "commits": "monotonic", "fenced": True, "converge_within_s": 9}
    table |= {"no_rogue_reader": True}
    assert claim_problems(table) == []


def test_all_problems_are_listed_with_the_valid_choices() -> None:
    """A missing delivery, an unknown key, a wrong choice, no boolean and a negative number: five sentences."""
    problems = claim_problems({"ordre": "key", "order": "total", "fenced": 1, "converge_within_s": -1})
    assert [problem.partition(" ")[2][:12] for problem in problems] == [
        "unknown key ",
        "delivery is ",
        "order = 'tot",
        "fenced = 1 m",
        "converge_wit",
    ]


def test_from_when_on_data_is_cold_says_nothing_alone() -> None:
    """It belongs to a limit of what may be read; a limit of nothing at all is no number of bytes that can be kept."""
    limit = {"delivery": "unclaimed", "reads_cold_bytes_max": 1, "cold_after_s": 2.5}
    alone = {"delivery": "unclaimed", "cold_after_s": 2.5}
    none = {"delivery": "unclaimed", "reads_cold_bytes_max": 0}
    assert [claim_problems(table) for table in (limit, alone, none)] == [
        [],
        ["[claim] cold_after_s says nothing without reads_cold_bytes_max: say how much may be read, too"],
        ["[claim] reads_cold_bytes_max = 0 must be a positive number"],
    ]
