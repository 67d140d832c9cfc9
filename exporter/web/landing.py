"""The page at ``/``: what this is, where the metrics are, which ports there are. Without scripts and without other files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

from exporter import __version__
from exporter.model import Inventory, Netdev, RdmaPort

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{border-bottom:1px solid #8884;padding:.2rem 1.5rem .2rem 0;text-align:left}"
    ":root{color-scheme:light dark}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy."""


def page(inventory: Inventory, telemetry_path: str, *, ready: bool) -> str:
    """Return the page."""
    missing = [_port(port, "missing") for port in inventory.missing]
    ports = missing + [_port(port, "") for port in inventory.ports]
    tables = _table(
        "RDMA ports", ("Device", "Port", "Interface", "Driver", "Link layer", "Role", "Rail", "PCI address", ""), ports
    )
    interfaces = [_interface(netdev) for netdev in inventory.netdevs]
    tables += _table("Interfaces", ("Interface", "RDMA device", "Driver", "Role", "Bond", "PCI address"), interfaces)
    waiting = "" if ready else "<p>Devices are being looked for; load this page again in a moment.</p>\n"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Fabric health exporter</title><style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>Fabric health exporter {escape(__version__)}</h1>\n"
        f'<p><a href="{escape(telemetry_path)}">Metrics</a></p>\n{waiting}{tables}</body></html>\n'
    )


def _port(port: RdmaPort, state: str) -> tuple[object, ...]:
    name = port.netdev + (f" ({', '.join(port.members)})" if port.members else "")
    return port.device, port.port, name, port.driver, port.link_layer, port.role, port.rail, port.pci_address, state


def _interface(netdev: Netdev) -> tuple[object, ...]:
    return netdev.name, netdev.device, netdev.driver, netdev.role, netdev.master, netdev.pci_address


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>\n" for row in rows)
    if not lines:
        return f"<h2>{title}</h2>\n<p>None found.</p>\n"
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<h2>{title}</h2>\n<table>\n<tr>{names}</tr>\n{lines}</table>\n"
