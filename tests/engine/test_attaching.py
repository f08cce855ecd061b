"""The attach stages: in order, each plugin with what is its own, and nothing of one plugin's fault falls on another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crystal.testing.crystaler import Crystaler
from crystal.types.commands import StatusField
from crystal.types.environment import Environment, ModelClients, SessionModels, StatusUpdates
from crystal.types.items import UserItem
from crystal.types.model import ModelRequest, Purpose, TextDelta
from crystal.types.notes import NoteCode
from tests.host.hosts import MadePlugin


def attach_all(order: list[str], name: str = "Acme", **more: Any) -> MadePlugin:
    """A plugin that takes part in every stage and says so."""

    def say(stage: str) -> Any:
        return lambda *_: order.append(stage)

    def attach(environment: Environment) -> None:
        order.append("attach")

    def attach_session(models: SessionModels) -> None:
        order.append("attach_session")

    def attach_clients(clients: ModelClients) -> None:
        order.append("attach_clients")

    def attach_data_directories(global_directory: Path, project_directory: Path) -> None:
        order.append("attach_data_directories")

    def attach_status(updates: StatusUpdates) -> None:
        order.append("attach_status")

    def contribute_status_fields() -> list[StatusField]:
        order.append("contribute")
        return [StatusField(name="build", description="state of the build")]

    def on_session_started() -> None:
        order.append("on_session_started")

    hooks = {key: value for key, value in locals().items() if key.startswith(("attach", "contribute", "on_"))}
    return MadePlugin(name, **(hooks | more))


@pytest.fixture
def scripted(crystaler: Crystaler) -> Crystaler:
    crystaler.script([{"text": "Done."}])
    return crystaler


def test_the_stages_come_in_the_order_of_the_seed(scripted: Crystaler) -> None:
    order: list[str] = []
    scripted.makeplugin("Acme", attach_all(order))
    assert scripted.run().exit_code == 0
    assert order == [
        "contribute",
        "attach",
        "attach_session",
        "attach_clients",
        "attach_data_directories",
        "attach_status",
        "on_session_started",
    ]


def test_a_stage_that_fails_costs_neither_the_later_ones_nor_other_plugins(scripted: Crystaler) -> None:
    def failing() -> None:
        raise SystemExit(9)

    stages = ("attach", "attach_session", "attach_clients", "attach_data_directories", "attach_status")
    order: list[str] = []
    scripted.makeplugin(
        "Bad",
        attach_all(
            [],
            "Bad",
            contribute_status_fields=lambda: [StatusField(name="bad", description="")],
            **dict.fromkeys(stages, failing),
        ),
    )
    scripted.makeplugin("Good", attach_all(order, "Good"))
    result = scripted.run()
    assert result.exit_code == 0
    assert [stage for stage in order if stage.startswith("attach")] == list(stages)
    assert [note.code for note in result.notes if note.source.endswith("Bad")].count(NoteCode.HOOK_ERROR) == 5


def test_clients_are_named_in_a_note_for_each_plugin_that_takes_them(scripted: Crystaler) -> None:
    scripted.makeplugin("Acme", attach_all([]))
    scripted.makeplugin("Plain", MadePlugin("Plain", on_session_started=lambda: None))
    notes = [note for note in scripted.run().notes if note.code is NoteCode.MODEL_CLIENTS]
    assert [note.text for note in notes] == ["Plugin 'plugin:test/Acme' can call the session and review models."]


def test_a_plugins_own_call_enters_neither_transcript_nor_budget(crystaler: Crystaler) -> None:
    heard: list[str] = []
    held: list[ModelClients] = []

    async def on_turn_finished() -> None:
        clients = held[0]
        assert clients.session is clients.session
        assert (clients.independent_review, clients.review) == (False, None)
        request = ModelRequest(purpose=Purpose.PLUGIN, items=(UserItem(id="u", text="hello"),))
        stream = clients.session.stream(request, lambda _: b"")
        heard.extend([delta.text async for delta in stream if isinstance(delta, TextDelta)])

    crystaler.makeplugin(
        "Acme",
        MadePlugin("Acme", attach_clients=lambda clients: held.append(clients), on_turn_finished=on_turn_finished),
    )
    crystaler.script([{"text": "Done."}, {"for": "plugin", "text": "to the plugin"}])
    result = crystaler.run("go", "--model-calls", "1")
    assert result.exit_code == 0
    assert "".join(heard) == "to the plugin"
    assert "to the plugin" not in result.stdout
    shown = crystaler.command("sessions", "show", result.session_id)
    assert "to the plugin" not in shown.stdout


def test_data_directories_are_made_and_belong_to_the_plugin(scripted: Crystaler) -> None:
    given: list[tuple[Path, Path]] = []

    def attach_data_directories(global_directory: Path, project_directory: Path) -> None:
        given.append((global_directory, project_directory))
        assert global_directory.is_dir()
        (project_directory / "state").write_text("kept")

    scripted.makeplugin("Acme", MadePlugin("Acme", attach_data_directories=attach_data_directories))
    scripted.run()
    scripted.script([{"text": "Done."}])
    scripted.run()
    own = ("data", "plugins", "Acme")
    assert given == [(scripted.home.joinpath(*own), scripted.workspace.joinpath(".crystal", *own))] * 2
    assert (given[0][1] / "state").read_text() == "kept"
    assert (scripted.workspace / ".crystal" / "data" / ".gitignore").read_text() == "*\n"


def test_a_plugin_without_the_hook_makes_no_folder_in_the_workspace(scripted: Crystaler) -> None:
    scripted.makeplugin("Acme", MadePlugin("Acme", on_session_started=lambda: None))
    scripted.run()
    assert not (scripted.workspace / ".crystal").exists()


def test_a_link_in_the_path_of_the_data_refuses_the_directories(scripted: Crystaler, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (scripted.workspace / ".crystal").symlink_to(elsewhere)
    order: list[str] = []
    scripted.makeplugin("Acme", attach_all(order))
    notes = [note for note in scripted.run().notes if note.code is NoteCode.DATA_DIRECTORY]
    assert "attach_data_directories" not in order
    assert len(notes) == 1
    assert str(scripted.workspace / ".crystal") in notes[0].text
    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_the_plugins_to_find_out(scripted: Crystaler) -> None:
    (scripted.workspace / ".crystal").write_text("a file in the way")
    order: list[str] = []
    scripted.makeplugin("Acme", attach_all(order))
    result = scripted.run()
    assert "attach_data_directories" in order
    assert NoteCode.DATA_DIRECTORY not in {note.code for note in result.notes}


def test_a_sink_is_for_a_plugin_with_an_admitted_field_only(scripted: Crystaler) -> None:
    order: list[str] = []
    scripted.makeplugin("First", attach_all(order, "First"))
    scripted.makeplugin("Second", attach_all(order, "Second"))
    scripted.run()
    assert order.count("attach_status") == 1, "the second plugin's field is a duplicate, so it has none"


def test_the_facts_of_the_model_hold_no_secret_and_stay_live(scripted: Crystaler) -> None:
    held: list[SessionModels] = []
    scripted.makeplugin("Acme", MadePlugin("Acme", attach_session=lambda models: held.append(models)))
    scripted.run()
    facts = held[0].session
    assert facts is not None
    assert (facts.provider, facts.protocol) == ("scripted", "scripted")
    assert not {"key", "api_key", "base_uri", "organization", "project"} & set(facts.__field_annotations__)
    assert (held[0].review.independent, held[0].review.model) == (False, None)
