"""The port's performance management attributes (PMA), where the names are InfiniBand's own.

On an Ethernet port these exist on some drivers and mean little; they are served for InfiniBand and Omni-Path, and for
Ethernet with the full profile only.
"""

from exporter.catalogue.declare import P, counter

XMIT_WAIT = counter(
    "fabric_ib_transmit_wait_ticks_total",
    P,
    "Ticks with data to send but no credit. A tick has no fixed length: compare with its past or with the data sent.",
)
SYMBOL_ERRORS = counter("fabric_ib_symbol_errors_total", P, "Minor link errors on any lane.")
LINK_RECOVERIES = counter("fabric_ib_link_error_recoveries_total", P, "Link retrains that succeeded.")
RECEIVE_ERRORS = counter("fabric_ib_received_errors_total", P, "Packets received with an error.")
REMOTE_PHYSICAL_ERRORS = counter(
    "fabric_ib_received_remote_physical_errors_total",
    P,
    "Packets that another device had marked bad: the fault is at another hop.",
)
SWITCH_RELAY_ERRORS = counter(
    "fabric_ib_received_switch_relay_errors_total", P, "Packets that a switch could not forward.", profile="full"
)
TRANSMIT_DISCARDS = counter(
    "fabric_ib_transmitted_discards_total", P, "Packets not sent because the port was down or congested."
)
TRANSMIT_CONSTRAINTS = counter(
    "fabric_ib_transmitted_constraint_errors_total", P, "Packets not sent because of partition rules.", profile="full"
)
RECEIVE_CONSTRAINTS = counter(
    "fabric_ib_received_constraint_errors_total", P, "Packets not accepted because of partition rules.", profile="full"
)
LOCAL_INTEGRITY = counter(
    "fabric_ib_local_link_integrity_errors_total", P, "Times the local physical error threshold was passed."
)
BUFFER_OVERRUNS = counter(
    "fabric_ib_excessive_buffer_overruns_total",
    P,
    "Times flow control failed to keep the receive buffer from overrunning.",
)
VL15_DROPPED = counter(
    "fabric_ib_vl15_dropped_packets_total", P, "Management packets dropped for lack of resources.", profile="full"
)
UNICAST_RECEIVED = counter("fabric_ib_unicast_received_packets_total", P, "Unicast packets received.", profile="full")
UNICAST_TRANSMITTED = counter(
    "fabric_ib_unicast_transmitted_packets_total", P, "Unicast packets transmitted.", profile="full"
)
MULTICAST_RECEIVED = counter(
    "fabric_ib_multicast_received_packets_total", P, "Multicast packets received.", profile="full"
)
MULTICAST_TRANSMITTED = counter(
    "fabric_ib_multicast_transmitted_packets_total", P, "Multicast packets transmitted.", profile="full"
)
