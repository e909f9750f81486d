"""Measurements: minimum, median and maximum of what this project calls fast, and ratios within one run."""
