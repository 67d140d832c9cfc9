"""One file per NIC driver: raw counter -> catalogue metric."""
