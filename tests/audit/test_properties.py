"""The syntaxes of a Kafka client's properties file: as Java reads them, and no value quoted where they are wrong."""

from __future__ import annotations

import pytest

from kafka_trial.audit.command_config import parse_jaas, parse_properties

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("  a : b c ", {"a": "b c "}),
        ("a b", {"a": "b"}),
        ("a=\nb", {"a": "", "b": ""}),
        ("# a=1\n  ! b=2\n\nc=3", {"c": "3"}),
        ("a=1\r\na=2", {"a": "2"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a\\=b\\ c=d", {"a=b c": "d"}),
        ("a=one \\\n   two\\\n# three", {"a": "one two# three"}),
        ("a=ends\\\\\nb=2", {"a": "ends\\", "b": "2"}),
        ("a=\\t\\u00e9\\ud83d\\ude00\\q", {"a": "\té😀q"}),
        ("a=last\\", {"a": "last"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    """Separators, comments, continuations and escapes are those of java.util.Properties."""
    assert parse_properties(text) == found


@pytest.mark.parametrize("text", ["a=hunter2\\u12", "a=hunter2\\ud83d"])
def test_an_escape_that_is_none_is_told_without_its_value(text: str) -> None:
    """The value may be a password."""
    with pytest.raises(ValueError, match=r"\\u") as told:
        parse_properties(text)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ('username="u" password="p"', {"username": "u", "password": "p"}),
        ("username='u'\n password = p-1$", {"username": "u", "password": "p-1$"}),
        (r'password="a\"b\\c;d=e\101\t\9"', {"password": 'a"b\\c;d=eA\t9'}),
        ('password=";"', {"password": ";"}),
        ('password="="', {"password": "="}),
        ('password=""', {"password": ""}),
        ("", {}),
    ],
)
def test_a_jaas_line_is_read_as_kafka_reads_it(options: str, found: dict[str, str]) -> None:
    """What stands in quotation marks is one word, whatever is in it."""
    module = parse_jaas(f"{SCRAM} required {options};")
    assert (module.name, module.options, "hunter2" in repr(module)) == (SCRAM, found, False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must come first"),
        (f"{SCRAM} password=hunter2;", "must come first"),
        (f'{SCRAM} required password="hunter2"', "semicolon"),
        (f"{SCRAM} required password=hunter2; {SCRAM} required;", "exactly one"),
        (f'{SCRAM} required password="hunter2;', "not closed"),
        (f"{SCRAM} required password hunter2;", "only, each as key"),
        (f"{SCRAM} required password=hunter2 debug;", "only, each as key"),
        (f"{SCRAM} required password==;", "only, each as key"),
    ],
)
def test_a_jaas_line_that_is_none_is_told_without_its_values(text: str, said: str) -> None:
    """One sentence on what should stand there."""
    with pytest.raises(ValueError, match=said) as told:
        parse_jaas(text)
    assert "hunter2" not in str(told.value)


def test_a_login_module_is_printed_without_its_options() -> None:
    """They hold the password."""
    assert repr(parse_jaas(f'{SCRAM} required password="hunter2";')) == f"LoginModule(name='{SCRAM}')"
