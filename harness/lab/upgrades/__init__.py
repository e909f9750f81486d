"""What `upgrade` says on the pairs of versions that teams move between; `python -m lab.upgrades`."""
