"""RDMA counters against pyroute2's decoder: the same 8 answers to STAT_GET of 60 counters each, in one run, alternating.

The answers are synthetic: encoded here in the kernel's form, names and layout constant, new values each round.

Run: python -m bench.rdma_decode
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from statistics import median

from pyroute2.netlink import nla, nlmsg

from exporter.kernel import Statistics
from exporter.kernel.netlink import attribute, name_attribute, nested, number_attribute
from exporter.kernel.rdma import CounterDecoder

PORTS, COUNTERS, ROUNDS = 8, 60, 50
NAMES = tuple(f"counter_of_some_length_{n}" for n in range(COUNTERS))


def answer(port: int) -> tuple[bytes, tuple[int, ...]]:
    """Return what follows struct nlmsghdr in an answer of nldev.c's stat_get_doit_default_counter, and its values."""
    values = tuple(random.getrandbits(random.choice((8, 32, 64))) for _ in NAMES)
    counters = (
        nested(81, name_attribute(82, name), attribute(83, struct.pack("=Q", value)))
        for name, value in zip(NAMES, values, strict=True)
    )
    device = (number_attribute(1, port), name_attribute(2, f"mlx5_{port}"), number_attribute(3, 1))
    return b"".join(device) + nested(80, *counters), values


class Nldev(nlmsg):  # type: ignore[misc] # pyroute2 has no types
    """The same attributes, as pyroute2 wants them."""

    prefix = "RDMA_NLDEV_ATTR_"
    nla_map = (
        (1, "RDMA_NLDEV_ATTR_DEV_INDEX", "uint32"),
        (2, "RDMA_NLDEV_ATTR_DEV_NAME", "asciiz"),
        (3, "RDMA_NLDEV_ATTR_PORT_INDEX", "uint32"),
        (80, "RDMA_NLDEV_ATTR_STAT_HWCOUNTERS", "counters"),
    )

    class counters(nla):  # type: ignore[misc] # noqa: N801 # untyped; nla_map names it
        nla_map = ((81, "RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY", "entry"),)

        class entry(nla):  # type: ignore[misc] # noqa: N801 # as above
            nla_map = (
                (82, "RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME", "asciiz"),
                (83, "RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE", "uint64"),
            )


def pyroute2_decode(body: bytes) -> Statistics:
    message = Nldev(struct.pack("=IHHII", 16 + len(body), 5137, 0, 1, 1) + body)
    message.decode()
    entries = message.get_attr("RDMA_NLDEV_ATTR_STAT_HWCOUNTERS").get_attrs("RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY")
    return Statistics(
        tuple(entry.get_attr("RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME") for entry in entries),
        tuple(entry.get_attr("RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE") for entry in entries),
    )


def milliseconds(decode: Callable[[bytes], Statistics], answers: list[tuple[bytes, tuple[int, ...]]]) -> float:
    """Return the CPU time to decode all answers. Raises AssertionError when one is decoded wrongly."""
    start = time.process_time()
    decoded = [decode(body) for body, _ in answers]
    spent = (time.process_time() - start) * 1e3
    assert decoded == [Statistics(NAMES, values) for _, values in answers]
    return spent


def main() -> None:
    decoder = CounterDecoder()
    first = milliseconds(decoder.decode, [answer(port) for port in range(PORTS)])
    ours, theirs = [], []
    for _ in range(ROUNDS):
        answers = [answer(port) for port in range(PORTS)]
        ours.append(milliseconds(decoder.decode, answers))
        theirs.append(milliseconds(pyroute2_decode, answers))
    print(f"{PORTS} ports x {COUNTERS} counters (synthetic answers), CPU milliseconds, median of {ROUNDS}")
    print(f"  exporter.kernel.rdma  {median(ours):7.3f}   (the first time, with learning the layout: {first:.3f})")
    print(f"  pyroute2              {median(theirs):7.3f}")
    print(f"  ratio pyroute2 / ours {median(theirs) / median(ours):7.0f}")


if __name__ == "__main__":
    main()
