"""Runnable benchmarks of an installed Crystal; ``python -m benchmarks`` prints what they found."""
