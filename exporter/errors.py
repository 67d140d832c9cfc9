"""The exception tree: what a user did, or gave us, that we cannot use.

Errors of the kernel are plain :class:`OSError` with their errno; they are handled where they are read.
"""

from __future__ import annotations


class FabricError(Exception):
    """Base of every error that is told to the user in one line: what, where, what was expected."""


class UsageError(FabricError):
    """A command line that cannot be used (exit status 2)."""


class ConfigError(FabricError):
    """A configuration, web configuration or certificate file that cannot be used (exit status 2)."""


class CaptureError(FabricError):
    """A capture folder or file that cannot be read or written."""


class KernelError(FabricError):
    """The kernel of this host does not answer."""


class StorageError(FabricError):
    """A transaction that the state database could not make; nothing of it is kept."""
