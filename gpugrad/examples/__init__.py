"""Example training jobs on real data; run one with ``python -m gpugrad.examples.NAME``."""
