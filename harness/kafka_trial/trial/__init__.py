"""One trial: its spec, what it needs, its story (`run.py`, the first to read), and a session of many."""
