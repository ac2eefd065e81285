"""Prompt templates of the deployment: what a reference to one puts in force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from omni_realtime.protocol import (
    Capabilities,
    PromptTemplate,
    ProtocolError,
    SessionConfig,
    default_session,
    response_settings,
    to_wire,
    update_session,
)

OLD = PromptTemplate(id="pmpt_desk", version="1", instructions="Be curt.")
DESK = PromptTemplate(id="pmpt_desk", version="2", instructions="You work for {{company}}, in {{ city }}; love {{city}}.")
PLAIN = PromptTemplate(id="pmpt_plain", instructions="Be plain.")
IN_BONN = {"id": "pmpt_desk", "variables": {"company": "ACME", "city": {"type": "input_text", "text": "Bonn"}}}
FILLED = "You work for ACME, in Bonn; love Bonn."

Start = Callable[..., SessionConfig]
Update = Callable[..., SessionConfig]


@pytest.fixture
def served(capabilities: Capabilities) -> Capabilities:
    return replace(capabilities, prompts=(OLD, DESK, PLAIN), default_instructions="Be kind.")


@pytest.fixture
def start(served: Capabilities) -> Start:
    def start(**defaults: Any) -> SessionConfig:
        return default_session(session_id="s", model="m", capabilities=served, defaults=defaults, expires_at=0)

    return start


@pytest.fixture
def update(served: Capabilities, start: Start) -> Update:
    """Apply patches one after the other, and return the session."""

    def update(*patches: dict[str, Any], default: SessionConfig | None = None) -> SessionConfig:
        default = config = default or start()
        for patch in patches:
            config = update_session(config, {"type": "realtime", **patch}, served, default=default, voice_locked=False)
        return config

    return update


@pytest.mark.parametrize(
    ("prompt", "instructions"),
    [
        (IN_BONN, FILLED),
        (IN_BONN | {"version": "2"}, FILLED),
        ({"id": "pmpt_desk", "version": "1"}, "Be curt."),
        ({"id": "pmpt_plain", "version": None, "variables": None}, "Be plain."),
        ({"id": "pmpt_plain", "variables": {}}, "Be plain."),
        ({"id": "pmpt_desk", "variables": {"company": "{{city}}", "city": r"\1"}}, r"You work for {{city}}, in \1; love \1."),
    ],
)
def test_a_prompt_gives_the_instructions(update: Update, prompt: dict[str, Any], instructions: str) -> None:
    wire = to_wire(update({"prompt": prompt}))
    assert wire["instructions"] == instructions
    assert wire["prompt"] == {name: value for name, value in prompt.items() if value is not None}


@pytest.mark.parametrize(
    ("patches", "instructions"),
    [
        ([{"prompt": IN_BONN, "instructions": "Rhyme."}], "Rhyme."),
        ([{"prompt": IN_BONN, "instructions": ""}], ""),
        ([{"prompt": IN_BONN}, {"instructions": "Rhyme."}], "Rhyme."),
        ([{"instructions": "Rhyme."}, {"prompt": IN_BONN}], FILLED),
        ([{"prompt": IN_BONN}, {"instructions": "Rhyme."}, {"instructions": None}], FILLED),
        ([{"prompt": IN_BONN}, {"tools": []}], FILLED),
        ([{"prompt": IN_BONN}, {"prompt": {"id": "pmpt_plain"}}], "Be plain."),
        ([{"prompt": IN_BONN}, {"prompt": None}], "Be kind."),
        ([{"prompt": IN_BONN}, {"prompt": None, "instructions": None}], "Be kind."),
        ([{"prompt": IN_BONN}, {"instructions": "Rhyme."}, {"prompt": None}], "Rhyme."),
        ([{"instructions": "Rhyme."}, {"prompt": None}], "Rhyme."),
        ([{"prompt": IN_BONN}, {"prompt": None, "instructions": "Rhyme."}], "Rhyme."),
    ],
)
def test_the_session_s_own_instructions_stand_over_the_prompt(update: Update, patches: list[dict[str, Any]], instructions: str) -> None:
    assert update(*patches).instructions == instructions


def test_an_update_without_either_leaves_both(update: Update) -> None:
    config = update({"prompt": IN_BONN}, {"instructions": "Rhyme."}, {"tools": []})
    assert (config.instructions, config.prompt is not None) == ("Rhyme.", True)


@pytest.mark.parametrize(
    ("patches", "instructions"),
    [
        ([], "Be plain."),
        ([{"instructions": "Rhyme."}, {"instructions": None}], "Be plain."),
        ([{"prompt": None}], "Be kind."),
        ([{"prompt": IN_BONN}, {"prompt": None}], "Be kind."),
        ([{"prompt": IN_BONN}, {"prompt": None, "instructions": None}], "Be kind."),
        ([{"prompt": None}, {"instructions": "Rhyme."}, {"instructions": None}], "Be kind."),
    ],
)
def test_a_deployment_s_session_may_have_a_prompt(start: Start, update: Update, patches: list[dict[str, Any]], instructions: str) -> None:
    assert update(*patches, default=start(prompt={"id": "pmpt_plain"})).instructions == instructions


REFUSED = [
    ("unknown id", {"id": "x"}, "invalid_value", "id", "the prompts are: 'pmpt_desk', 'pmpt_plain'."),
    ("unknown version", {"id": "pmpt_desk", "version": "3"}, "invalid_value", "version", "'3' is not one of '1', '2'."),
    ("number as version", {"id": "pmpt_desk", "version": 2}, "invalid_type", "version", "string"),
    ("missing variable", {"id": "pmpt_desk", "variables": {"company": "x"}}, "missing_required_parameter", "variables.city", "city"),
    ("no variables", {"id": "pmpt_desk"}, "missing_required_parameter", "variables.company", "company"),
    ("unknown variable", {"id": "pmpt_plain", "variables": {"x": ""}}, "unknown_parameter", "variables.x", "none"),
    (
        "unknown beside known",
        {"id": "pmpt_desk", "variables": {"company": "", "town": ""}},
        "unknown_parameter",
        "variables.town",
        "company, city",
    ),
    ("number", {"id": "pmpt_desk", "variables": {"company": 1, "city": ""}}, "invalid_type", "variables.company", "string"),
    ("null", {"id": "pmpt_desk", "variables": {"company": None, "city": ""}}, "invalid_type", "variables.company", "string"),
    (
        "image",
        {"id": "pmpt_desk", "variables": {"company": {"type": "input_image", "detail": "low"}, "city": ""}},
        "invalid_value",
        "variables.company",
        "'input_image'",
    ),
    (
        "file",
        {"id": "pmpt_desk", "variables": {"company": {"type": "input_file"}, "city": ""}},
        "invalid_value",
        "variables.company",
        "'input_file'",
    ),
    (
        "object of no type",
        {"id": "pmpt_desk", "variables": {"company": {"text": "x"}, "city": ""}},
        "missing_required_parameter",
        "variables.company.type",
        "type",
    ),
    (
        "cache breakpoint",
        {
            "id": "pmpt_desk",
            "variables": {
                "company": {"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
                "city": "",
            },
        },
        "invalid_value",
        "variables.company.prompt_cache_breakpoint",
        "null",
    ),
    ("long", {"id": "pmpt_desk", "variables": {"company": "x" * 65_537, "city": ""}}, "invalid_value", "variables.company", "65536"),
    ("variables as list", {"id": "pmpt_desk", "variables": []}, "invalid_type", "variables", "object"),
    ("unknown key", {"id": "pmpt_desk", "text": ""}, "unknown_parameter", "text", "text"),
]


@pytest.mark.parametrize("where", ["session", "response", "session beside instructions", "response beside instructions"])
@pytest.mark.parametrize(("prompt", "code", "param", "told"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_prompt_that_cannot_be_used_is_refused_by_name(
    where: str, served: Capabilities, start: Start, update: Update, prompt: dict[str, Any], code: str, param: str, told: str
) -> None:
    name, _, beside = where.partition(" beside ")
    patch = {"prompt": prompt, **({beside: "Rhyme."} if beside else {})}
    with pytest.raises(ProtocolError) as refused:
        response_settings(start(), patch, served) if name == "response" else update(patch)
    assert (refused.value.code, refused.value.param) == (code, f"{name}.prompt.{param}")
    assert told in refused.value.message


def test_the_longest_variable_is_taken(update: Update) -> None:
    variables = {"company": "x" * 65_536, "city": ""}
    assert update({"prompt": {"id": "pmpt_desk", "variables": variables}}).instructions.count("x") == 65_536


@pytest.mark.parametrize(
    ("params", "instructions"),
    [
        ({}, "Be curt."),
        ({"prompt": None}, "Be curt."),
        ({"prompt": IN_BONN}, FILLED),
        ({"prompt": IN_BONN, "instructions": None}, FILLED),
        ({"prompt": IN_BONN, "instructions": "Rhyme."}, "Rhyme."),
        ({"instructions": "Rhyme."}, "Rhyme."),
    ],
)
def test_a_response_s_prompt_is_for_that_response(update: Update, served: Capabilities, params: dict[str, Any], instructions: str) -> None:
    config = update({"prompt": {"id": "pmpt_desk", "version": "1"}})
    assert response_settings(config, params, served).instructions == instructions
    assert config.instructions == "Be curt."


@pytest.mark.parametrize(
    ("text", "stray", "variables"),
    [
        ("{{a}} {{ b_2 }} {{a}}", None, ("a", "b_2")),
        ("{a} }} {", None, ()),
        ("x {{a b}} y", "{{a b}} y", ()),
        ("{{a}} {{2}}", "{{2}}", ("a",)),
        ("{{}}", "{{}}", ()),
        ("{{a", "{{a", ()),
    ],
)
def test_variables_are_names_in_double_braces(text: str, stray: str | None, variables: tuple[str, ...]) -> None:
    template = PromptTemplate(id="p", instructions=text)
    assert (template.stray, template.variables) == (stray, variables)
