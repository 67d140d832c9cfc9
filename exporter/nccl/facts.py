"""What one line of a log says, as a value.

A pattern table turns a line into a fact; the evidence turns facts into verdicts. Facts know the line, nothing else: no time of
reading, no file, no earlier line. Numbers are as printed; text that a line does not carry is empty, a number None.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Path = Literal["gdr", "host", "socket"]
Level = Literal["INFO", "WARN", "ATTN", "VERSION", "DIAG", ""]


class Record(NamedTuple):
    """One line after its wrappers are off and its prefix is read (``src/debug.cc``).

    ``host``, ``pid`` and ``tid`` are empty or 0 where the prefix is lost; ``device`` is the CUDA device of the logging thread
    (never of an asynchronous event); ``location`` is a WARN's file and line. ``timestamp`` is the container runtime's where there
    is one (RFC 3339), else NCCL's as printed, without a zone. ``level`` is empty for the echo of an error that a framework
    prints (``Last error:``) and for the version it names.
    """

    level: Level
    message: str
    host: str = ""
    pid: int = 0
    tid: int = 0
    device: int | None = None
    location: str = ""
    timestamp: str = ""


class Version(NamedTuple):
    """``NCCL version 2.27.7+cuda13.0``; ``library`` is ``NCCL`` or ``RCCL``."""

    library: str
    version: str
    runtime: str = ""


class Network(NamedTuple):
    """``Using network IBext_v8``: the network of a communicator."""

    name: str


class Plugin(NamedTuple):
    """A plugin of a ``kind`` (net, tuner, profiler, ofi) was loaded, or was not."""

    kind: str
    name: str
    version: str
    outcome: Literal["loaded", "absent", "failed"]


class Device(NamedTuple):
    """One device of a ``Using`` list: the plugin's own index, the HCA, its port, ``IB`` / ``RoCE`` / empty.

    A merged NIC has several members ``(name, port)``; a plain one has itself.
    """

    number: int
    name: str
    port: int
    link_layer: str
    members: tuple[tuple[str, int], ...]


class Devices(NamedTuple):
    """``NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.1<0>``. An empty list is possible."""

    network: str
    devices: tuple[Device, ...]
    relaxed_ordering: bool | None
    interface: str
    address: str


class NoDevice(NamedTuple):
    """``NET/IB : No device found.``"""

    network: str


class VirtualDevice(NamedTuple):
    """``Made virtual device [0] name=mlx5_0+mlx5_1 speed=800000 ndevs=2``; speed in Mb/s."""

    number: int
    name: str
    speed: int | None
    members: int


class Hardware(NamedTuple):
    """A physical device of NET/IB: its number, PCI path under /sys and speed in Mb/s (2.27.3 and later, subsystem NET)."""

    number: int
    name: str
    port: int
    link_layer: str
    provider: str
    speed: int
    pci_path: str


class Channel(NamedTuple):
    """A network channel. ``sender`` / ``receiver`` are ranks, ``connection`` the number after the slash, ``proxy`` the PXN rank.

    ``path`` is ``gdr`` with ``/GDRDMA``, ``socket`` on a socket network, else ``host``. ``device`` is the plugin's index.
    """

    direction: Literal["send", "receive"]
    network: str
    device: int
    path: Path
    channel: int
    connection: int
    sender: int
    receiver: int
    proxy: int | None = None
    flush: str = ""


class Local(NamedTuple):
    """Channels inside the host (or NVLink domain): ``p2p``, ``shm``; ``how`` is what follows (``CUMEM/read``, ``direct``).

    Most lines of a log are of this kind: ``lines`` is how many of one thread were read at once, the record is the first's.
    """

    kind: Literal["p2p", "shm"]
    how: str
    lines: int = 1


class Collnet(NamedTuple):
    """A CollNet channel."""

    direction: Literal["send", "receive"]
    network: str
    device: int
    path: Path


class Connected(NamedTuple):
    """``Connected all rings, use ring PXN 0 GDR 1`` (gdr None before 2.24) and the like; ``what`` is rings, trees, ..."""

    what: str
    gdr: bool | None = None
    pxn: bool | None = None


class GdrDevice(NamedTuple):
    """GPU Direct RDMA enabled or disabled for one HCA of a network (the NIC's side of it)."""

    network: str
    number: int
    name: str
    enabled: bool
    reason: str = ""


class GdrDistance(NamedTuple):
    """The decision for a GPU and an HCA by distance. The numbers mean other paths in other versions."""

    enabled: bool
    gpu: str
    hca: str
    distance: int | None
    limit: int | None
    mode: str = ""


class GdrSupport(NamedTuple):
    """What a plugin says of GDR as a whole (aws-ofi-nccl, HPC-X, RCCL, NCCL's flush limit)."""

    enabled: bool
    reason: str


class DmaBuf(NamedTuple):
    """``DMA-BUF is available on GPU device 0``: the GPU's side only, no proof that a NIC uses it."""

    device: int


class Init(NamedTuple):
    """A communicator's start or completion. ``communicator`` is the pointer, ``identity`` the commId (equal on all ranks)."""

    stage: Literal["start", "complete", "destroyed", "aborted"]
    communicator: str
    rank: int | None
    ranks: int | None
    cuda_device: int | None
    nvml_device: int | None
    bus_id: str
    identity: str


class Shape(NamedTuple):
    """``comm ... nRanks 16 nNodes 2 localRanks 8``."""

    communicator: str
    ranks: int
    nodes: int
    local_ranks: int


class Setting(NamedTuple):
    """A variable as NCCL echoes it when it first reads it (the trailing dot of numbers is off)."""

    name: str
    value: str


class BadSetting(NamedTuple):
    """``Invalid value x for NCCL_Y, using default 1.``"""

    name: str
    value: str


class Bootstrap(NamedTuple):
    """The interface and address used for out-of-band traffic."""

    interface: str
    address: str


class Completion(NamedTuple):
    """A completion in error. ``opcode`` and ``len`` of a failed completion are garbage and are not here.

    ``vendor_error`` is the number as printed in decimal; ``companion`` marks the second line of one error (C9, C10).
    """

    status: int
    name: str
    vendor_error: int | None
    peer: str
    hca: str
    request: str = ""
    local_gid: str = ""
    remote_gid: str = ""
    queue_pair: int | None = None
    network: str = ""
    companion: bool = False


class PluginError(NamedTuple):
    """A request that failed in a plugin with codes of its own (libfabric): not a verbs status."""

    network: str
    code: int | None
    text: str
    device: int | None = None


class AsyncEvent(NamedTuple):
    """An asynchronous event of a device; ``event`` is snake_case from EVENTS, ``hca`` is empty in old versions."""

    event: str
    hca: str
    port: int | None
    fatal: bool


class Slow(NamedTuple):
    """A work request that took long (``slow``) or has not completed (``stall``), by NCCL's or RCCL's latency monitor."""

    kind: Literal["slow", "stall"]
    peer: str
    hca: str
    port: int | None


class Resiliency(NamedTuple):
    """Port failover and recovery: what happened to which device of a merged NIC."""

    what: Literal["failed", "recovered", "recovery_failed", "permanent", "fatal", "replaced"]
    device: int | None


class Failure(NamedTuple):
    """Something else that went wrong; ``kind`` is one of FAILURES.

    ``consequence`` marks what follows from an earlier error (proxy, abort, closed sockets). ``code`` is an errno or result
    code, ``peer`` an address or host name, both where printed.
    """

    kind: str
    what: str
    code: int | None = None
    peer: str = ""
    hca: str = ""
    consequence: bool = False


class Trace(NamedTuple):
    """A frame of a call stack: ``transport/net.cc:1298 -> 6``. Never an event of its own."""

    code: int


class Report(NamedTuple):
    """A line of NCCL's diagnostics, of RAS or of Inspector: ``area`` and text, ``finding`` when it tells of a fault."""

    area: str
    text: str
    finding: bool


class Noise(NamedTuple):
    """A line that is known and says nothing here."""

    what: str


Fact = (
    Version
    | Network
    | Plugin
    | Devices
    | NoDevice
    | VirtualDevice
    | Hardware
    | Channel
    | Local
    | Collnet
    | Connected
    | GdrDevice
    | GdrDistance
    | GdrSupport
    | DmaBuf
    | Init
    | Shape
    | Setting
    | BadSetting
    | Bootstrap
    | Completion
    | PluginError
    | AsyncEvent
    | Slow
    | Resiliency
    | Failure
    | Trace
    | Report
    | Noise
)

FAILURES = (
    "abort",
    "bootstrap",
    "cuda",
    "device",
    "memlock",
    "nvlink",
    "other",
    "plugin",
    "protocol",
    "proxy",
    "resiliency",
    "setting",
    "shm",
    "socket",
    "timeout",
    "topology",
    "verbs",
    "version",
)
"""Classes of failures; ``other`` is a WARN that no table knows."""

EVENTS = (
    "cq_error",
    "qp_fatal",
    "qp_request_error",
    "qp_access_error",
    "communication_established",
    "send_queue_drained",
    "path_migrated",
    "path_migration_error",
    "device_fatal",
    "port_active",
    "port_error",
    "lid_change",
    "pkey_change",
    "sm_change",
    "srq_error",
    "srq_limit_reached",
    "last_wqe_reached",
    "client_reregistration",
    "gid_change",
    "wq_fatal",
    "speed_change",
)
"""Asynchronous events by their number (``enum ibv_event_type``); another event is ``unknown``."""

STATUSES = (
    "SUCCESS",
    "LOC_LEN_ERR",
    "LOC_QP_OP_ERR",
    "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",
    "WR_FLUSH_ERR",
    "MW_BIND_ERR",
    "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",
    "REM_INV_REQ_ERR",
    "REM_ACCESS_ERR",
    "REM_OP_ERR",
    "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR",
    "LOC_RDD_VIOL_ERR",
    "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",
    "INV_EECN_ERR",
    "INV_EEC_STATE_ERR",
    "FATAL_ERR",
    "RESP_TIMEOUT_ERR",
    "GENERAL_ERR",
    "TM_ERR",
    "TM_RNDV_INCOMPLETE",
)
"""Completion statuses by their number (``enum ibv_wc_status``)."""
FLUSHED = 5
"""The status that follows from an earlier error or from the end of a queue pair."""
