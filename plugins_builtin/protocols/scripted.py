"""The ``scripted`` protocol: plays a script instead of asking a model, and checks what it was asked.

Rounds of one purpose are played in order by all clients that one factory made from equal scripts, so a
session resumed in the same process goes on where it was. A new process starts at the first round.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from crystal import hookimpl
from crystal.types.model import ClientFactory, ClientRequest, ModelClient, ModelError, ModelErrorKind

if TYPE_CHECKING:
    from plugins_builtin.protocols.script_player import ScriptPlayer

name = "scripted"


@hookimpl
def contribute_protocols() -> list[ClientFactory]:
    """Bring the protocol."""
    return [ScriptedFactory()]


class ScriptedFactory:
    """Builds clients that play the script in the option ``script``.

    It is the JSON object of a script file, a ``Script``, or a ``ScriptPlayer``, which is then shared. The
    option ``scriptSource`` names the file in messages.
    """

    protocols = ("scripted",)

    def __init__(self) -> None:
        self._players: dict[str, ScriptPlayer] = {}

    def create(self, request: ClientRequest) -> ModelClient:
        """Build a client.

        :raises ModelError: kind SCRIPT, when there is no script or it cannot be read.
        """
        from plugins_builtin.protocols.script_player import ScriptedClient

        return ScriptedClient(self._player(request.options.get("script"), request.options.get("scriptSource")))

    def _player(self, value: Any, source: Any) -> ScriptPlayer:
        # Every host loads every protocol; the player is imported when it is chosen.
        from plugins_builtin.protocols.script import Script, ScriptError, check_script
        from plugins_builtin.protocols.script_player import ScriptPlayer

        if isinstance(value, ScriptPlayer):
            return value
        if value is None:
            raise ModelError(
                ModelErrorKind.SCRIPT,
                "The scripted protocol has no script; give one with --script FILE.",
            )
        try:
            script = value if isinstance(value, Script) else check_script(value, str(source or "script"))
        except ScriptError as error:
            raise ModelError(ModelErrorKind.SCRIPT, str(error)) from error
        return self._players.setdefault(json.dumps(script.value, sort_keys=True), ScriptPlayer(script))
