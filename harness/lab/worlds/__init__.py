"""The worlds of a small history: what must have happened, and what may have, found by enumerating all it allows.

This is an oracle of another kind than the judge. The judge computes on intervals; here a history of few uncertain
events becomes every order of its instants, times every answer to its open questions, and in each such world all is
exact, and an anomaly is a textbook definition of a few lines. What the judge finds must be in all worlds; what is in
some of them it must find or leave undecided.

`story.py` writes event files of what truly happened, `draw.py` draws stories by seeds, `uncertainty.py` reads the files
again and says what they leave open, `worlds.py` enumerates, `textbook.py` has the definitions, `compare.py` asks the
judge, `known_disagreements.py` lists each that is understood and is the judge's, `shrink.py` makes a new one small.
`python -m lab.worlds --seeds 1-200` compares.

It has: skipped, commit-ahead, commit-regression, commit-past-end, commit-lost, zombie-commit, redelivered,
illegal-redelivery, retried, nonmonotonic-poll, poll-skip, reordered-key, overlapping-handlers, split-ownership,
work-after-revoke, zombie-work. One partition, members of one incarnation each, classic groups
and assignments of KIP-848. What is left open: what a killed member had still ended, whether an answer was received that
a fault may have lost, whose request made a commit, lines that were read late, came out of a buffer, or met a harness
that stood still, and the order of instants of different witnesses.

It has not yet: all other anomalies, sinks and their effects, transactions, several partitions, clients or incarnations
of a process, pending revocations, lines that a witness contradicts, deleted records, operators. So it stands beside the
naive checker (`lab.naive`), which has them. It shares no code with either judge.
"""
