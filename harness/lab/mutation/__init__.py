"""Mutation: bugs planted in the checker, one at a time, to see whether the tests notice (`make mutate`).

`operators.py` says which bugs there are, `killers.py` plants one and runs the tests on it, `campaign.py` goes through
them, `rows.py` keeps what came out and makes the page. `equivalents.toml` lists the changes that change nothing, each
with the reason.
"""
