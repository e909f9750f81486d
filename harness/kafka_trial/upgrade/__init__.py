"""An upgrade of a cluster with groups at work on it: its stages, played on one cluster, and the verdict of each."""
