"""The laboratory: what measures the harness and shows how far it can be trusted. It is not in the wheel.

`calibration` tries consumers of known guilt again and again, `agreement` asks a second, naive judge, `worlds` compares
the judge with all that small histories allow, `mutation` plants bugs in the invariants, `cases` measures what people
lived through, `bench` and `scale` measure, `remake_diffs` carries the diffs of faulty consumers over to changed
references. Each is started as `python -m lab.<name>` in a checkout.
"""
