from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.errors import ConfigError
from exporter.yamlfile import load, load_as


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    x: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    a: int = 0
    names: list[str] = []
    users: dict[str, str] = {}
    inner: Inner | None = None


def write(folder: Path, text: str) -> Path:
    path = folder / "f.yml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n", "~"])
def test_an_empty_file_is_an_empty_mapping(tmp_path: Path, text: str) -> None:
    assert load(write(tmp_path, text)) == {}
    assert load_as(tmp_path / "f.yml", Outer) == Outer()


def test_values_keep_their_types(tmp_path: Path) -> None:
    assert load(write(tmp_path, "a: 1\nb: [x, 2.5, true]\n")) == {"a": 1, "b": ["x", 2.5, True]}


def test_merge_keys_may_be_overridden(tmp_path: Path) -> None:
    assert load(write(tmp_path, "y: &y {k: 2, l: 3}\np: {q: &x {<<: *y, k: 1}}\nb: {<<: *y}\n")) == {
        "y": {"k": 2, "l": 3},
        "p": {"q": {"k": 1, "l": 3}},
        "b": {"k": 2, "l": 3},
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3: key 'a' is given twice"),
        ("inner: {x: 1, x: 1}", ":1: key 'x' is given twice"),
        ("a: [", ":1: expected the node content, but found '<stream end>'"),
        ("a:\n\t- 1", ":2: found character '\\t' that cannot start any token"),
        ("--- 1\n--- 2\n", ":2: expected a single document in the stream, but found another document"),
        ("[" * 5000, ": nested too deeply"),
        ("? [a]\n: 1", ":1: a key must be text or a number"),
        ("a: 2026-02-30", ": day is out of range for month"),
        ("a: !!python/x y", ":1: could not determine a constructor for the tag 'tag:yaml.org,2002:python/x'"),
        ("a\x00", ": character 2 is not allowed in YAML"),
    ],
)  # fmt: skip
def test_what_is_no_strict_yaml_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load(path)
    assert str(error.value) == f"{path}{said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nope: 1", "nope: unknown key"),
        ("inner: {nope: 1}", "inner.nope: unknown key"),
        ("a: one", "a: expected a number, found text"),
        ("names: [x, 1]", "names[1]: expected text, found a number"),
        ("names: x", "names: expected a list, found text"),
        ("users: {1: x}", "a key of users: expected text, found a number"),
        ("inner: 1", "inner: expected a map of keys or nothing, found a number"),
        ("- 1", "the file: expected a map of keys, found a list"),
    ],
)
def test_what_does_not_fit_is_said_with_its_key(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load_as(path, Outer)
    assert str(error.value) == f"{path}: {said}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yml: cannot be read: No such file or directory$"):
        load(tmp_path / "none.yml")
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe.yml")
    with pytest.raises(ConfigError, match=r"pipe\.yml: cannot be read: Not a regular file$"):
        load(tmp_path / "pipe.yml")
    (tmp_path / "latin.yml").write_bytes(b"a: \xe4")
    with pytest.raises(ConfigError, match=r"latin\.yml: byte 4 is not UTF-8$"):
        load(tmp_path / "latin.yml")


@given(st.text(alphabet="ab:-[]{}&*<>!?|#'\"%@` \n\t0.\\~\x00\xe4", max_size=40))
def test_any_text_is_a_document_or_one_line(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = write(tmp_path_factory.getbasetemp(), text)
    said = str(path)
    try:
        load_as(path, Outer)
    except ConfigError as error:
        said = str(error)
    assert said.startswith(str(path))
    assert "\n" not in said
