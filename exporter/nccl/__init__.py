"""NCCL evidence: what path a job took, and what broke, read from the logs that NCCL and its plugins write."""
