"""The audit: what one runs the morning after the page, over a cluster that is not ours. No faults, nothing written.

`request.py` says what is asked, `export.py` looks whether it is there and tells the story of the export into a run
folder, and `rules.py` says what such a history can and cannot prove. Between them stands the judge of trials.
"""
