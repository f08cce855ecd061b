from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.store.interpolation import VariableError, fill_variables

ENVIRON = {"SET": "value", "NESTED": 'a ${SET} "quote"', "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${SET}", "value"),
        ("{env:SET}", "value"),
        ("a-${SET}-{env:SET}-b", "a-value-value-b"),
        ("${UNSET:-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("${UNSET:-}", ""),
        ("$${SET}", "${SET}"),
        ("$SET", "$SET"),
        ("${NESTED}", 'a ${SET} "quote"'),
        ("{other} }{", "{other} }{"),
    ],
)
def test_variables_are_filled_in_once(text: str, filled: str) -> None:
    assert fill_variables(text, ENVIRON) == filled


@pytest.mark.parametrize("text", ["${UNSET}", "a {env:UNSET} b", "$${SET} ${UNSET}"])
def test_an_unset_variable_is_named(text: str) -> None:
    with pytest.raises(VariableError, match="the environment variable UNSET is not set"):
        fill_variables(text, ENVIRON)


@pytest.mark.parametrize("text", ["${", "${}", "${1}", "${A-b}", "${A B}", "{env:}", "{env:A B}", "{env:A"])
def test_a_malformed_variable_is_refused(text: str) -> None:
    with pytest.raises(VariableError, match="a variable is written"):
        fill_variables(text, ENVIRON)


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_a_value_is_inserted_as_it_is_whatever_it_holds(value: str) -> None:
    assert fill_variables("<${V}|{env:V}>", {"V": value}) == f"<{value}|{value}>"
