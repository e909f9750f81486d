"""The cases that people lived through, provoked and measured: rows in `reports/cases.jsonl`, pages in `docs/cases/`."""
