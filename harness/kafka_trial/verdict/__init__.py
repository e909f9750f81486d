"""From the judge's findings and a run's own events to pass, fail or unknown.

`collect.py` puts together what a verdict rests on, `decide.py` weighs it by what each claim allows, decides, and puts
what follows from something beneath it, `messages.py` tells it.
"""
