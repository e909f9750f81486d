"""Container engines: the one that is there, or a private one that leaves nothing behind."""
