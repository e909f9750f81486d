"""An upgrade of a cluster: which moves are allowed, and until when; the stages, played on one cluster; their verdicts."""
