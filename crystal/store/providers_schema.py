"""The shape of ``providers.json``, for checking and for the JSON Schema. Imports pydantic: see ``validated``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, RootModel, Tag
from pydantic_core import PydanticCustomError

from crystal.store.json_files import JsonFile
from crystal.store.validation import FileSchema, expect, validate_file

_ONE, _SEVERAL = " one", " several"  # with a blank, so that no provider's name is taken for a tag


def _address(value: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not value.isascii() or not value.isprintable() or set(value) & set(" {}$\"'\\<>"):
        raise ValueError
    if "@" in parts.netloc:
        raise PydanticCustomError("refused", "an address holds no user name or password; use apiKey or headers")
    if parts.query or parts.fragment:
        raise PydanticCustomError("refused", "an address holds no query or fragment")
    return value


def _how_many(value: Any) -> str:
    return _SEVERAL if isinstance(value, list) else _ONE


Text = Annotated[str, expect("a text")]
Switch = Annotated[bool, expect("true or false")]
PositiveInteger = Annotated[int, Field(gt=0), expect("a positive integer")]
Address = Annotated[str, AfterValidator(_address), expect("an address that begins with http:// or https://")]
Protocol = Annotated[
    str,
    Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"),
    expect("a protocol name: a letter, then letters, digits, _ or -, at most 64"),
]
Variable = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
    expect("the name of an environment variable, not the key itself"),
]
FieldName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), expect("the name of a request field")]
Effort = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$"), expect("an effort word such as high")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[ -~]*$")]
ProviderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class ModelSchema(FileSchema):
    """One model of a provider."""

    context_window: PositiveInteger
    """Tokens the model can hold, output included."""
    temperature: Annotated[float, Field(ge=0), expect("a number from 0")] | None = None
    """Sampling temperature; left to the provider when absent."""
    top_p: Annotated[float, Field(ge=0, le=1), expect("a number from 0 to 1")] | None = None
    """Nucleus sampling; left to the provider when absent."""
    max_tokens: PositiveInteger | None = None
    """Output limit that is sent; none is sent when absent."""
    thinking: Effort | None = None
    """Thinking effort of this model; the operator's choice when absent."""
    thinking_efforts: Annotated[list[str], expect("a list of effort words")] = Field(default_factory=list)
    """Effort words this model takes."""
    image_input: Switch = False
    """Whether the model takes images."""
    audio_input: Switch = False
    """Whether the model takes audio."""
    video_input: Switch = False
    """Whether the model takes video."""


class ProviderSchema(FileSchema):
    """One endpoint that speaks one protocol."""

    protocol: Protocol | None = None
    """How the endpoint is spoken to; may be left out for a provider Crystal knows."""
    base_uri: Address | None = None
    """Address of the endpoint without the protocol's own path; may be left out for a provider Crystal knows."""
    api_key: Text = ""
    """The key: {env:NAME}, {file:path}, or the key itself."""
    api_key_environment: Variable | None = None
    """Environment variable that holds the key."""
    requires_api_key: Switch | None = None
    """Whether a missing key is an error."""
    organization: Text = ""
    """Organization sent with requests."""
    project: Text = ""
    """Project sent with requests."""
    replay_reasoning_content: Switch | None = None
    """Whether earlier reasoning is sent back with the conversation."""
    token_limit: FieldName | None = None
    """Name of the output limit in requests."""
    headers: Annotated[dict[HeaderName, HeaderValue], expect("an object of header names and texts")] = Field(
        default_factory=dict
    )
    """Extra headers; values take {env:NAME} and {file:path}."""
    models: dict[str, ModelSchema] = Field(default_factory=dict)
    """Models by name; the first one is the default."""


class ProvidersSchema(
    RootModel[
        dict[
            ProviderName,
            Annotated[
                Annotated[ProviderSchema, Tag(_ONE)] | Annotated[list[ProviderSchema], Tag(_SEVERAL)],
                Discriminator(_how_many),
            ],
        ]
    ]
):
    """Providers by name: one definition, or a list of them for a gateway that speaks several protocols."""


def validate_providers(file: JsonFile) -> tuple[str, ...]:
    """Check ``providers.json`` and return one text for each unknown key.

    :raises HomeFileError: for the first fault.
    """
    return validate_file(ProvidersSchema, file, frozenset({_ONE, _SEVERAL}))
