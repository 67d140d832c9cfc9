"""YAML files that an operator wrote, read strictly: every mistake is one line that says where and what was expected."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Hashable
from typing import TypeVar

import msgspec
import yaml

from exporter.errors import ConfigError

T = TypeVar("T")

_AT = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>.*)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<name>.*)`$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$", re.DOTALL)
_WRONG = re.compile(r"^Expected `(?P<expected>.*)`, got `(?P<got>.*)`$", re.DOTALL)
_WORDS = {"str": "text", "int": "a number", "float": "a number", "bool": "true or false", "array": "a list"}
_WORDS |= {"object": "a map of keys", "null": "nothing"}


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return a file's content. Raises :class:`OSError`, for a pipe too: it would hold up the whole program."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "Not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def load(path: str | os.PathLike[str]) -> object:
    """Return what the YAML file holds (YAML 1.1, safe tags only). An empty file is ``{}``.

    Raises :class:`ConfigError` when the file cannot be read, is no YAML, holds more than one document, or gives a key twice
    (PyYAML alone keeps the last one silently).
    """
    name = os.fspath(path)
    try:
        text = read_regular(path).decode()
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: byte {error.start + 1} is not UTF-8") from None
    try:
        document = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a SafeLoader that is stricter
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        problem = error.problem or ""
        if problem.startswith("but "):
            problem = f"{error.context}, {problem}"
        raise ConfigError(f"{name}{line}: {_one_line(problem)}") from None
    except yaml.reader.ReaderError as error:
        raise ConfigError(f"{name}: character {error.position + 1} is not allowed in YAML") from None
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply") from None
    except ValueError as error:  # a date such as 2026-02-30
        raise ConfigError(f"{name}: {_one_line(str(error))}") from None
    return {} if document is None else document


def load_as(path: str | os.PathLike[str], type: type[T]) -> T:
    """Return the file's content as a ``type`` (a msgspec struct that forbids unknown fields, mostly).

    Raises :class:`ConfigError` as :func:`load` does, and for an unknown key, a missing key or a value of the wrong type.
    """
    document = load(path)
    try:
        return msgspec.convert(document, type)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{os.fspath(path)}: {_explain(str(error))}") from None
    except RecursionError:
        raise ConfigError(f"{os.fspath(path)}: an alias that holds itself") from None


def _explain(message: str) -> str:
    """Say msgspec's message in the words of who wrote the file: the key first, then what is wrong with it."""
    where = ""
    if at := _AT.search(message):
        message = message[: at.start()]
        where = ("a key of " if at["key"] else "") + (at["path"].removeprefix(".") or "the file")
    if match := _UNKNOWN.match(message):
        return f"{f'{where}.' if where and where != 'the file' else ''}{match['name']}: unknown key"
    if match := _MISSING.match(message):
        return f"{f'{where}.' if where and where != 'the file' else ''}{match['name']}: missing"
    if match := _WRONG.match(message):
        expected = " or ".join(_WORDS.get(word, word) for word in match["expected"].split(" | "))
        message = f"expected {expected}, found {_WORDS.get(match['got'], match['got'])}"
    return _one_line(f"{where or 'the file'}: {message}")


def _one_line(text: str) -> str:
    return " ".join(text.split())


class _StrictLoader(yaml.SafeLoader):
    """A SafeLoader that refuses a key given twice in one mapping. Merge keys (``<<``) may still be overridden."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._checked: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Look at the keys before those of merge keys are put among them, which happens once or more per node."""
        if node not in self._checked:
            self._checked.add(node)
            seen: set[object] = set()
            for key_node, _ in node.value:
                if key_node.tag == "tag:yaml.org,2002:merge":
                    continue
                key = self.construct_object(key_node, deep=True)
                if not isinstance(key, Hashable):
                    raise _problem("a key must be text or a number", key_node)
                if key in seen:
                    raise _problem(f"key {key!r} is given twice", key_node)
                seen.add(key)
        super().flatten_mapping(node)


def _problem(message: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, message, node.start_mark)
