"""Concrete names for a pattern: every alternative, the ends of every small range, something for every open one."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator
from typing import Any

_parser: Any = importlib.import_module("re._parser")
SMALL = 8
"""Sets of so many characters are taken whole; of larger ones the first and the last."""


def names_of(pattern: str) -> tuple[str, ...]:
    """Return names that the pattern matches in full, in a fixed order. Raises NotImplementedError for what no table uses."""
    return tuple(dict.fromkeys(_sequence(_parser.parse(pattern))))


def _sequence(tokens: Any) -> Iterator[str]:
    for parts in itertools.product(*(tuple(_token(str(code), argument)) for code, argument in tokens)):
        yield "".join(parts)


def _token(code: str, argument: Any) -> Iterator[str]:
    match code:
        case "LITERAL":
            yield chr(argument)
        case "AT":
            yield ""
        case "ANY":
            yield "x"
        case "IN":
            yield from _characters(argument)
        case "BRANCH":
            for branch in argument[1]:
                yield from _sequence(branch)
        case "SUBPATTERN":
            yield from _sequence(argument[3])
        case "MAX_REPEAT":
            least, most, inner = argument
            choices = tuple(_sequence(inner))
            for count in dict.fromkeys((least, min(least + 1, most))):
                yield from choices if count == 1 else (choices[0] * count,)
        case _:
            raise NotImplementedError(code)


def _characters(items: Any) -> tuple[str, ...]:
    found: list[str] = []
    for code, argument in items:
        match str(code):
            case "LITERAL":
                found.append(chr(argument))
            case "RANGE":
                found += [chr(number) for number in range(argument[0], argument[1] + 1)]
            case "CATEGORY":
                found += "0123456789"
            case _:
                raise NotImplementedError(code)
    return tuple(found) if len(found) <= SMALL else (found[0], found[-1])
