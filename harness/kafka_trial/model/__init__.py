"""What became of the partitions of a trial, and of the group, as far as the evidence goes."""
