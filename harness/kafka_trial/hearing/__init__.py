"""From findings to a verdict: what the judge found and what the run itself says, heard together."""
