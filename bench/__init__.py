"""Side-by-side benchmarks: run with python -m bench.NAME."""
