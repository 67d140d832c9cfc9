"""Fabric health exporter: what the NICs, the kernel and NCCL know about a GPU host's network, for Prometheus."""

__version__ = "0.1.0"
