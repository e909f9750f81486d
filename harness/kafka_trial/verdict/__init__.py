"""From the judge's findings and a run's own events to pass, fail or unknown.

`collect.py` puts together what a verdict rests on, `rule_evaluation.py` says what each claim allows, `decide.py` weighs
and decides, `root_causes.py` puts what follows from something beneath it, `messages.py` tells it, `files.py` writes it.
"""
