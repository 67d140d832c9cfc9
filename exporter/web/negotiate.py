"""What to answer with: the format from ``Accept``, the coding from ``Accept-Encoding``.

Prometheus 3 fails a scrape whose Content-Type is missing or not valid, so there is always exactly one, with version and charset.
prometheus_client's ``choose_encoder`` is not used: it disregards ``q``, does not know OpenMetrics 0.0.1, and repeats any newer
version that a client names as if it had been written.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import NamedTuple

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version={version}; charset=utf-8"


class Format(NamedTuple):
    """The format of a page: which of the two, and how it is named."""

    openmetrics: bool
    content_type: str


PLAIN = Format(False, TEXT)


def choose_format(accept: str) -> Format:
    """Return the format with the highest ``q`` that can be served, the first of equals; text 0.0.4 when there is none.

    All names are ASCII letters, digits and underscores, so that a page is the same under every escaping scheme but ``dots``:
    ``allow-utf-8`` is confirmed, to any other the answer is ``underscores``.
    """
    best, best_q = PLAIN, 0.0
    for media_type, parameters in _elements(accept):
        offered = _offer(media_type, parameters)
        if offered is not None and (q := _q(parameters)) > best_q:
            best, best_q = offered, q
    return best


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether the client takes gzip, and does not want ``identity`` more (RFC 9110 section 12.5.3)."""
    weights = {coding: _q(parameters) for coding, parameters in _elements(accept_encoding)}
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def gzip(page: bytes) -> bytes:
    """Return the page as a gzip file. Level 1: pages are much alike inside, higher levels cost more than they save."""
    return zlib.compress(page, level=1, wbits=31)


def _offer(media_type: str, parameters: dict[str, str]) -> Format | None:
    version = parameters.get("version", "")
    if media_type == "application/openmetrics-text":
        if version == "0.0.1":
            return Format(True, OPENMETRICS.format(version=version))
        if version in ("", "1.0.0"):
            escaping = parameters.get("escaping")
            confirmed = "allow-utf-8" if escaping == "allow-utf-8" else "underscores"
            suffix = f"; escaping={confirmed}" if escaping else ""
            return Format(True, OPENMETRICS.format(version="1.0.0") + suffix)
        return None
    return PLAIN if media_type in ("text/plain", "text/*", "*/*") else None


def _elements(header: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the elements of a list with their parameters, in lower case."""
    for element in header.lower().split(","):
        name, *rest = (part.strip() for part in element.split(";"))
        pairs = (part.partition("=") for part in rest)
        yield name, {key.strip(): value.strip().strip('"') for key, _, value in pairs}


def _q(parameters: dict[str, str]) -> float:
    """Return the weight; one that is no number counts as 0: the client cannot have wanted it much."""
    try:
        q = float(parameters.get("q", "1"))
    except ValueError:
        return 0.0
    return q if math.isfinite(q) else 0.0
