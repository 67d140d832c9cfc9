"""What a port is, whether it is up, how fast, and how it sits in the host."""

from exporter.catalogue.declare import N, P, counter, gauge

PORT_INFO = gauge(
    "fabric_port_info",
    (
        *N,
        "driver",
        "pci_address",
        "pcie_root",
        "numa_node",
        "link_layer",
        "firmware_version",
        "board_id",
        "function",
        "role",
        "rail",
        "plane",
    ),
    "An RDMA port and what it hangs on; exactly one series per device and port, always 1. netdev is the bond for a bond.",
    sources=("ports",),
)
NETDEV_INFO = gauge(
    "fabric_netdev_info",
    (*N, "driver", "pci_address", "numa_node", "firmware_version", "function", "master", "role"),
    "A network interface and what it hangs on; exactly one series per interface, always 1. master is its bond.",
    sources=("netdevs",),
)
PORT_UP = gauge(
    "fabric_port_up",
    P,
    "1 when the port is ACTIVE and its link is up, 0 when it is not or when a port that was there has vanished. "
    "EFA always reports ACTIVE: there 1 says only that the device exists.",
    sources=("ports",),
)
PORT_STATE = gauge(
    "fabric_port_state_id",
    P,
    "Logical state of the RDMA port: 0 NOP, 1 DOWN, 2 INIT, 3 ARMED, 4 ACTIVE, 5 ACTIVE_DEFER.",
    sources=("ports",),
)
PORT_PHYSICAL_STATE = gauge(
    "fabric_port_physical_state_id",
    P,
    "Physical state of the RDMA port: 1 Sleep, 2 Polling, 3 Disabled, 4 PortConfigurationTraining, 5 LinkUp, "
    "6 LinkErrorRecovery, 7 Phy Test.",
    sources=("ports",),
)
PORT_SPEED = gauge(
    "fabric_port_speed_bytes_per_second",
    P,
    "Data rate of the RDMA port while it is up. No series while it is down: drivers then report a rate that means nothing.",
    sources=("ports",),
)
PORT_MISSING = gauge(
    "fabric_port_missing",
    P,
    "1 when this physical port was seen since the exporter started and has vanished (NIC off the bus, driver unloaded).",
    sources=("ports",),
)
NETDEV_UP = gauge(
    "fabric_netdev_up",
    N,
    "1 when the interface is administratively up and has carrier, 0 when it does not.",
    sources=("netdevs",),
)
NETDEV_SPEED = gauge(
    "fabric_netdev_speed_bytes_per_second",
    N,
    "Link speed of the interface while it has carrier; no series otherwise.",
    sources=("netdevs",),
)
LINK_DOWNS = counter(
    "fabric_port_link_downs_total",
    N,
    "Times the link went down, counted by the device or its driver, else by the kernel.",
    sources=("ethtool", "rdma", "pma", "linkstate", "netdevs"),
)
CARRIER_CHANGES = counter(
    "fabric_port_carrier_changes_total",
    N,
    "Carrier changes of the interface, up and down, counted by the kernel. Never misses a flap between two scrapes.",
    sources=("netdevs",),
)
LAST_DOWN = gauge(
    "fabric_port_last_down_timestamp_seconds",
    N,
    "When the exporter last saw the link go down, from link events. No series before the first time.",
    sources=("netdevs",),
)
LINK_EXT_STATE = gauge(
    "fabric_netdev_link_ext_state_id",
    N,
    "Why the link is down (ETHTOOL_A_LINKSTATE_EXT_STATE): 0 autonegotiation, 1 link training failure, 2 logical "
    "mismatch, 3 bad signal integrity, 4 no cable, 5 cable issue, 6 EEPROM issue, 7 calibration failure, 8 power budget "
    "exceeded, 9 overheat, 10 module. Only while the driver gives a reason.",
    sources=("linkstate",),
)
MODULE_EVENTS = counter(
    "fabric_module_events_total",
    (*N, "event"),
    "Events of the optical or copper module since the driver was loaded: unplugged, bus stuck, too hot, shorted.",
)
PCIE_LINK_SPEED = gauge(
    "fabric_pcie_link_speed_transfers_per_second",
    N,
    "Transfers per second and lane of the NIC's PCIe link now.",
    sources=("pcie",),
)
PCIE_LINK_SPEED_MAX = gauge(
    "fabric_pcie_link_max_speed_transfers_per_second",
    N,
    "Transfers per second and lane that the NIC's PCIe link could do.",
    sources=("pcie",),
)
PCIE_LINK_WIDTH = gauge("fabric_pcie_link_width", N, "Lanes of the NIC's PCIe link now.", sources=("pcie",))
PCIE_LINK_WIDTH_MAX = gauge(
    "fabric_pcie_link_max_width", N, "Lanes that the NIC's PCIe link could use.", sources=("pcie",)
)
PCIE_AER_ERRORS = counter(
    "fabric_pcie_aer_errors_total",
    (*N, "kind"),
    "PCIe errors reported by the NIC's function (advanced error reporting): correctable, nonfatal, fatal. No series when "
    "the firmware owns AER.",
    sources=("pcie",),
)
PCIE_STALLED_RATIO = gauge(
    "fabric_pcie_stalled_ratio",
    (*N, "operation"),
    "Share of the last second in which the NIC had outbound PCIe reads or writes but no credits. A snapshot of the device.",
    profile="full",
)
PCIE_STALLED_SECONDS = counter(
    "fabric_pcie_stalled_seconds_total",
    (*N, "operation"),
    "Seconds in which the NIC lacked PCIe credits for reads or writes more than 30 % of the time: host or PCIe too slow.",
)
PCIE_RECEIVED_SIGNAL_ERRORS = counter(
    "fabric_pcie_received_signal_errors_total",
    N,
    "PCIe signal integrity errors (replays, bad packets) that the NIC saw while receiving.",
    profile="full",
)
PCIE_TRANSMITTED_SIGNAL_ERRORS = counter(
    "fabric_pcie_transmitted_signal_errors_total",
    N,
    "PCIe signal integrity errors (replays, bad packets) that the NIC saw while transmitting.",
    profile="full",
)
PCIE_BUFFER_OVERFLOWS = counter(
    "fabric_pcie_buffer_overflow_packets_total",
    N,
    "Packets dropped because the NIC's outbound PCIe buffer was full.",
)
PCIE_UNDERRUNS = counter(
    "fabric_pcie_transmit_underruns_total",
    N,
    "Frames cut short on the way out because their data came too late from the host: PCIe or memory too slow.",
)
PCIE_INBOUND_BANDWIDTH_EVENTS = counter(
    "fabric_pcie_inbound_bandwidth_events_total",
    (*N, "threshold"),
    "Times the PCIe bandwidth into the device crossed its high or low threshold; congested now when high is low + 1.",
    profile="full",
)
PCIE_OUTBOUND_BANDWIDTH_EVENTS = counter(
    "fabric_pcie_outbound_bandwidth_events_total",
    (*N, "threshold"),
    "Times the PCIe bandwidth out of the device crossed its high or low threshold; congested now when high is low + 1.",
    profile="full",
)
PCIE_RDMA_ERRORS = counter(
    "fabric_pcie_rdma_errors_total", P, "PCIe errors while serving RDMA requests.", profile="full"
)
HEALTHY = gauge(
    "fabric_device_healthy",
    (*N, "pci_address", "reporter"),
    "State of a devlink health reporter: 1 healthy, 0 in error.",
    profile="full",
    sources=("devlink",),
)
HEALTH_ERRORS = counter(
    "fabric_device_health_errors_total",
    (*N, "pci_address", "reporter"),
    "Errors that a devlink health reporter counted: firmware and device, in the full profile the port's queues too.",
    sources=("devlink",),
)
HEALTH_RECOVERIES = counter(
    "fabric_device_health_recoveries_total",
    (*N, "pci_address", "reporter"),
    "Recoveries that a devlink health reporter counted.",
    profile="full",
    sources=("devlink",),
)
DEVICE_RESETS = counter("fabric_netdev_device_resets_total", N, "Device resets counted by the driver.")
WATCHDOG = counter(
    "fabric_netdev_tx_timeouts_total", N, "Transmit timeouts of the interface, counted by the driver.", profile="full"
)
DRIVER_ERRORS = counter(
    "fabric_netdev_driver_errors_total",
    (*N, "kind"),
    "Troubles of the driver and its queues: recoveries, error completions, failed allocations, lost interrupts.",
    profile="full",
)
SATURATED = gauge(
    "fabric_port_saturated",
    (*P, "field"),
    "1 when a counter that sticks at its maximum has reached it: it has stopped counting, and no growth means nothing.",
)
COUNTER_RESETS = counter(
    "fabric_port_resets_total",
    (*N, "kind"),
    "Times the counters of a port were seen to go back: reset (device or driver restarted), wrap (a narrow counter "
    "overflowed), membership (a sum over the members of a bond lost a member; the series was kept monotonic).",
)
