"""Whole lines out of a file that grows: each exactly once, however the growth and the reading interleave."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exporter.nccl.lines import BLOCK, LONGEST_LINE, SAMPLE, START, Mark, advance


def read(content: bytes, sizes: list[int], *, last: bool = True) -> tuple[bytes, Mark, int]:
    """Read a file that has these sizes one after the other, and its whole content in the end."""
    mark, lines, cut = START, b"", 0
    for size in [*sorted(sizes), len(content)]:
        while True:
            data = content[mark.offset : min(size, mark.offset + BLOCK)]
            step = advance(mark, data)
            lines, cut = lines + step.lines, cut + step.cut
            if step.mark.offset == mark.offset:
                break
            mark = step.mark
    if last:
        step = advance(mark, content[mark.offset :], last=True)
        lines, mark, cut = lines + step.lines, step.mark, cut + step.cut
    return lines, mark, cut


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=8))
def test_every_byte_of_every_line_is_read_once(content: bytes, sizes: list[int]) -> None:
    content = content.replace(b"\0", b"x")
    lines, mark, cut = read(content, sizes)
    assert (lines, mark.offset, cut) == (content, len(content), 0)
    assert (mark.head, mark.tail) == (content[:SAMPLE], content[-SAMPLE:])


@given(
    st.lists(st.tuples(st.integers(0, 3 * LONGEST_LINE), st.sampled_from([b"a", b"bc", b"\r"])), max_size=6),
    st.lists(st.integers(0, 8 * LONGEST_LINE), max_size=6),
)
def test_a_long_line_is_cut_at_the_same_place_however_it_is_read(
    shape: list[tuple[int, bytes]], sizes: list[int]
) -> None:
    whole = [text * (length // len(text)) for length, text in shape]
    lines, mark, cut = read(b"".join(line + b"\n" for line in whole), sizes, last=False)
    assert lines == b"".join(line[:LONGEST_LINE] + b"\n" for line in whole)
    assert cut == sum(len(line) > LONGEST_LINE for line in whole)
    assert not mark.skipping


def test_an_unfinished_line_is_left_where_it_begins() -> None:
    step = advance(START, b"one\ntwo\nthr")
    assert (step.lines, step.mark.offset) == (b"one\ntwo\n", 8)


def test_a_hole_before_a_line_is_no_part_of_it() -> None:
    content = bytes(3 * BLOCK + 17) + b"one\ntwo\n"
    lines, mark, cut = read(content, [5, BLOCK, BLOCK + 1])
    assert (lines, mark.offset, cut) == (b"one\ntwo\n", len(content), 0)


def test_the_samples_have_a_bound() -> None:
    line = b"x" * 100 + b"\n"
    _, mark, _ = read(line * 1000, list(range(0, 101_000, 997)))
    assert (mark.head, mark.tail) == ((line * 3)[:SAMPLE], (line * 3)[-SAMPLE:])
