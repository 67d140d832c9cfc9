"""Serve: what the program does without a verb."""

from __future__ import annotations

import argparse
import asyncio

from exporter import config, logs
from exporter.config import Settings


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Serve until SIGTERM, or with ``--config.check`` only look at the configuration files."""
    from exporter import daemon
    from exporter.web.webconfig import load_web_config

    if vars(arguments).get("config.check"):
        config.rules(settings)
        config.log_rules(settings)
        if settings.web_config_file:
            load_web_config(settings.web_config_file)
        print("configuration is good")
        return 0
    logs.set_up(settings.log_level, settings.log_format)
    asyncio.run(daemon.run(settings))
    return 0
