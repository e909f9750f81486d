"""The frozen comparison: what the judge says of thousands of histories may change only where a ledger says why."""
