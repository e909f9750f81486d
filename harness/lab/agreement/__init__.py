"""Agreement: both judges on histories of a seed that nobody has seen, as a part of `make calibrate`.

`make test` asks them of the same histories each time. `sample.py` draws histories, `sayings.py` has both judges say
what they find, `rows.py` keeps what came out and makes the page.
"""
