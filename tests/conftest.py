"""The suite uses the kit it ships, from this checkout whether or not it is installed.

The fixture is imported: naming the plugin in ``pytest_plugins`` fails where its entry point is installed as well.
"""

from __future__ import annotations

from crystal.testing.plugin import crystaler as crystaler
