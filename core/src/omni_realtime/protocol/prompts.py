"""From a reference to a prompt template to the instructions that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from omni_realtime.protocol.capabilities import Capabilities
from omni_realtime.protocol.prompt_template import PromptTemplate
from omni_realtime.protocol.session_object import Prompt, SessionConfig
from omni_realtime.protocol.validation import WireModel, refuse_missing, refuse_type, refuse_unknown, refuse_value, shown, validate

MAX_VARIABLE_CHARS: Final = 65_536
"""Characters of one variable: a template may hold it more than once."""

_SHOWN: Final = 80
"""Characters of a client's name that a path repeats."""


class _InputText(WireModel):
    type: Literal["input_text"]
    text: str
    prompt_cache_breakpoint: Any = None


def instructions_of(prompt: Prompt, templates: Sequence[PromptTemplate], param: str) -> str:
    """Return the text of the template that ``prompt`` names, its variables put in; without a version, the last one listed.

    Raises:
        ProtocolError: there is no such template, a variable is missing, unknown or no text; ``param`` begins with the one given.
    """
    if not templates:
        refuse_value(param, "this deployment has no prompts; send null.")
    template = _template(prompt, templates, param)
    where, given, names = f"{param}.variables", prompt.variables or {}, template.variables
    for name in given:
        if name not in names:
            refuse_unknown(f"{where}.{name[:_SHOWN]}", f" The variables of this prompt are: {', '.join(names) or 'none'}.")
    for name in names:
        if name not in given:
            refuse_missing(f"{where}.{name}")
    return template.fill({name: _text(given[name], f"{where}.{name}") for name in names})


def session_instructions(
    merged: SessionConfig, patch: Mapping[str, Any], capabilities: Capabilities, *, before: SessionConfig, default: SessionConfig
) -> str:
    """Return the instructions of ``merged``, which ``patch`` made of ``before``.

    They are the patch's own, else those of the prompt that it brings; ``null`` gives back the prompt's, or ``default``'s where no prompt is
    in force. A prompt that is turned off takes its instructions with it.

    Raises:
        ProtocolError: the prompt cannot be used.
    """
    if not patch.keys() & {"prompt", "instructions"}:
        return merged.instructions
    templates = capabilities.prompts
    text = None if merged.prompt is None else instructions_of(merged.prompt, templates, "session.prompt")
    if patch.get("instructions") is not None:
        return merged.instructions
    if text is not None:
        return text
    plain = capabilities.default_instructions if default.prompt else default.instructions
    if "instructions" in patch:
        return plain
    from_prompt = before.prompt is not None and before.instructions == instructions_of(before.prompt, templates, "session.prompt")
    return plain if from_prompt else merged.instructions


def _template(prompt: Prompt, templates: Sequence[PromptTemplate], param: str) -> PromptTemplate:
    versions = {template.version: template for template in templates if template.id == prompt.id}
    if not versions:
        known = dict.fromkeys(shown(template.id) for template in templates)
        refuse_value(f"{param}.id", f"there is no prompt {shown(prompt.id)}; the prompts are: {', '.join(known)}.")
    if prompt.version is None:
        return list(versions.values())[-1]
    if prompt.version not in versions:
        refuse_value(f"{param}.version", f"{shown(prompt.version)} is not one of {', '.join(map(shown, versions))}.")
    return versions[prompt.version]


def _text(value: object, param: str) -> str:
    if isinstance(value, Mapping):
        if value.get("type") in ["input_image", "input_file"]:
            refuse_value(param, f"an '{value['type']}' is not served here; send text.")
        given = validate(_InputText, value, param)
        if given.prompt_cache_breakpoint is not None:
            refuse_value(f"{param}.prompt_cache_breakpoint", "the cache cannot be steered; send null.")
        value = given.text
    if not isinstance(value, str):
        refuse_type(param, "a string", value)
    if len(value) > MAX_VARIABLE_CHARS:
        refuse_value(param, f"it has {len(value)} characters; send at most {MAX_VARIABLE_CHARS}.")
    return value
