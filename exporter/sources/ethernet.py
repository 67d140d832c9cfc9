"""What generic netlink, DCB and devlink tell of each interface."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from exporter.catalogue import ethernet as catalogue
from exporter.catalogue import ports
from exporter.drivers import GENERIC, driver_for
from exporter.drivers.entry import counter
from exporter.drivers.plan import Plan
from exporter.kernel import Dcb as DcbAnswer
from exporter.model import Inventory, Netdev, Reading, Series
from exporter.sources.base import Environment, Source, Trouble, Unit, same_netdev, series

REGISTER_AGE = 5.0
"""Seconds for which an answer is served again that costs the firmware a register read."""
PRIORITIES = range(8)
DSCP_SELECTOR = 5
"""IEEE_8021QAZ_APP_SEL_DSCP (include/uapi/linux/dcbnl.h)."""
DCBX_HOST = 1
"""DCB_CAP_DCBX_HOST: the host runs DCBX or sets the parameters. mlx5 without it leaves DCBX to its firmware."""

STANDARD = (
    counter("FrameCheckSequenceErrors", catalogue.CRC_ERRORS),
    counter("FrameTooLongErrors", catalogue.OVERSIZE),
)
"""Standard statistics (IEEE 802.3 30.3.1, ``ethtool -S IF --groups eth-mac``) for drivers without a table of their own."""

Samples = list[tuple[Series, int | float]]


class InterfaceSource(Source[Netdev]):
    """A source with one question per hardware interface."""

    max_age = REGISTER_AGE

    def units(self, inventory: Inventory) -> Sequence[Unit[Netdev]]:
        return [
            Unit(f"{netdev.name} {netdev.identity}", netdev)
            for netdev in inventory.netdevs
            if netdev.kind not in ("bond", "vlan", "bridge")
        ]

    def read(self, subject: Netdev, trouble: Trouble) -> list[Reading]:
        """Ask by name; an answer that may be another interface's is dropped."""
        readings = self.ask(subject)
        return readings if same_netdev(self.kernel, subject) else []

    def ask(self, subject: Netdev) -> list[Reading]:
        """Return what the interface of that name answers. Raises OSError."""
        raise NotImplementedError  # every source has its question


class PortSource(InterfaceSource):
    """A source that asks about the port. Of a virtual function most drivers answer zeros there: it is not asked."""

    def units(self, inventory: Inventory) -> Sequence[Unit[Netdev]]:
        return [unit for unit in super().units(inventory) if not unit.subject.virtual]


class LinkState(InterfaceSource):
    """Why a link is down, and how often it was."""

    name = "linkstate"
    about = "link state with its reason and down count (ethtool netlink)"

    def ask(self, subject: Netdev) -> list[Reading]:
        state = self.kernel.ethtool_netlink.link_state(subject.name)
        samples: Samples = []
        if state.ext_state is not None and not state.link:
            samples.append((series(ports.LINK_EXT_STATE, subject.labels), state.ext_state))
        if state.down_count is not None and not subject.virtual:
            samples.append((series(ports.LINK_DOWNS, subject.labels), state.down_count))
        return self.shapes.reading(samples)


class Pause(PortSource):
    """802.3x pause."""

    name = "pause"
    about = "802.3x pause settings and frames (ethtool netlink)"

    def ask(self, subject: Netdev) -> list[Reading]:
        pause = self.kernel.ethtool_netlink.pause(subject.name)
        identity = subject.labels
        samples: Samples = []
        counted = driver_for(subject.driver).pause_frames
        if counted and pause.received_frames is not None:
            samples.append((series(catalogue.GLOBAL_RECEIVED_FRAMES, identity), pause.received_frames))
        if counted and pause.transmitted_frames is not None:
            samples.append((series(catalogue.GLOBAL_TRANSMITTED_FRAMES, identity), pause.transmitted_frames))
        if self.environment.serves(catalogue.GLOBAL_RECEIVE_ENABLED):
            if pause.receive is not None:
                samples.append((series(catalogue.GLOBAL_RECEIVE_ENABLED, identity), int(pause.receive)))
            if pause.transmit is not None:
                samples.append((series(catalogue.GLOBAL_TRANSMIT_ENABLED, identity), int(pause.transmit)))
        return self.shapes.reading(samples)


class Fec(PortSource):
    """Forward error correction."""

    name = "fec"
    about = "forward error correction: mode, corrected and uncorrectable blocks (ethtool netlink)"

    def ask(self, subject: Netdev) -> list[Reading]:
        fec = self.kernel.ethtool_netlink.fec(subject.name)
        identity = subject.labels
        samples: Samples = [
            (series(metric, identity), value)
            for metric, value in (
                (catalogue.FEC_CORRECTED_BLOCKS, fec.corrected_blocks),
                (catalogue.FEC_UNCORRECTABLE_BLOCKS, fec.uncorrectable_blocks),
                (catalogue.FEC_CORRECTIONS, fec.corrected_bits),
            )
            if value is not None
        ]
        if fec.active and self.environment.serves(catalogue.FEC_INFO):
            samples.append((series(catalogue.FEC_INFO, identity, ("mode", fec.active)), 1))
        return self.shapes.reading(samples)


class Standard(InterfaceSource):
    """The kernel's standard statistics, for drivers whose own names are not known."""

    name = "standard"
    about = "standard MAC statistics of drivers without a table of their own (ethtool netlink)"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.plans: dict[str, Plan] = {}

    def units(self, inventory: Inventory) -> Sequence[Unit[Netdev]]:
        return [unit for unit in super().units(inventory) if driver_for(unit.subject.driver) is GENERIC]

    def ask(self, subject: Netdev) -> list[Reading]:
        names, values = self.kernel.ethtool_netlink.standard(subject.name)
        if not names:
            raise OSError(errno.EOPNOTSUPP, "no standard statistics", subject.name)
        plan = self.plans.get(subject.name)
        if plan is None or plan.names is not names or plan.identity != subject.labels:
            plan = self.plans[subject.name] = Plan(
                STANDARD, names, subject.labels, profile=self.environment.profile, resets=self.environment.resets
            )
        return [plan.reading(values)] if len(plan.shape) else []


class Dcb(InterfaceSource):
    """PFC configuration."""

    name = "dcb"
    about = "PFC, DSCP and DCBX configuration (DCB netlink)"

    def ask(self, subject: Netdev) -> list[Reading]:
        dcb = self.kernel.dcb.get(subject.name)
        if dcb.pfc_enabled is not None:
            self.environment.pfc[subject.name] = dcb.pfc_enabled
        samples = [pair for pair in dcb_samples(subject, dcb) if self.environment.serves(pair[0].metric)]
        return self.shapes.reading(samples)


def dcb_samples(netdev: Netdev, dcb: DcbAnswer) -> Samples:
    """Return what the DCB answer says. DSCP is trusted when the application table maps a DSCP (mlx5 has no other sign)."""
    identity = netdev.labels
    samples: Samples = []
    if dcb.pfc_enabled is not None:
        samples.extend(
            (series(catalogue.PFC_ENABLED, identity, ("priority", str(priority))), dcb.pfc_enabled >> priority & 1)
            for priority in PRIORITIES
        )
        dscps = [(protocol, priority) for selector, priority, protocol in dcb.applications if selector == DSCP_SELECTOR]
        samples.append((series(catalogue.DSCP_TRUSTED, identity), int(bool(dscps))))
        samples.extend(
            (series(catalogue.DSCP_PRIORITY, identity, ("dscp", str(dscp))), priority)
            for dscp, priority in sorted(dict(dscps).items())
        )
    if dcb.dcbx is not None:
        samples.append((series(catalogue.DCBX_FIRMWARE, identity), int(not dcb.dcbx & DCBX_HOST)))
    samples.extend(
        (series(catalogue.PRIORITY_BUFFER, identity, ("priority", str(priority))), dcb.buffer_sizes[buffer])
        for priority, buffer in enumerate(dcb.priority_buffers)
        if buffer < len(dcb.buffer_sizes)
    )
    return samples
