"""Benchmarks (SPEC 23): ratios against a baseline measured in the same run, never a timed test. `python -m bench`."""
