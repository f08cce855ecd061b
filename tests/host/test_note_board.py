"""The note board: every note is kept in order, and a listener hears the later ones."""

from __future__ import annotations

from crystal.host.notes import Notes
from crystal.types.notes import Note, NoteCode, Severity


def test_notes_are_kept_in_order() -> None:
    notes = Notes()
    notes.add(NoteCode.HOOK_ERROR, "First.", "plugin:home/A")
    notes.add_note(Note(code=NoteCode.RAW_HOOK, text="Second.", severity=Severity.INFO))
    assert notes.all == (
        Note(code=NoteCode.HOOK_ERROR, text="First.", source="plugin:home/A", severity=Severity.WARNING),
        Note(code=NoteCode.RAW_HOOK, text="Second.", source="crystal", severity=Severity.INFO),
    )


def test_a_listener_is_given_the_earlier_notes_and_hears_the_later_ones_once() -> None:
    notes = Notes()
    heard: list[Note] = []
    notes.add(NoteCode.HOOK_ERROR, "Before.")
    assert [note.text for note in notes.listen(heard.append)] == ["Before."]
    notes.add(NoteCode.HOOK_ERROR, "After.")
    assert [note.text for note in heard] == ["After."]
    assert [note.text for note in notes.all] == ["Before.", "After."]


def test_every_code_is_a_word_of_lower_case_letters_and_dashes() -> None:
    assert all(code.value.replace("-", "").isalpha() and code.value.islower() for code in NoteCode)
