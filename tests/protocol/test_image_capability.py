"""Images are served only by models that see."""

from __future__ import annotations

import pytest

from omni_realtime.protocol import Capabilities, InputImage, InputText, Message, ProtocolError, check_item

ITEM = Message(role="user", content=(InputText(text="what is it?"), InputImage(image=b"file")))


@pytest.mark.parametrize(
    ("capabilities", "offered"),
    [
        (Capabilities(), "'input_image' is not served; served: 'input_text'."),
        (Capabilities(audio_input=True), "'input_image' is not served; served: 'input_text', 'input_audio'."),
    ],
)
def test_a_model_that_does_not_see_refuses_an_image_by_name(capabilities: Capabilities, offered: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        check_item(ITEM, capabilities, "response.input.3")
    assert (caught.value.code, caught.value.param) == ("invalid_value", "response.input.3.content.1.type")
    assert offered in caught.value.message


def test_a_model_that_sees_takes_it() -> None:
    check_item(ITEM, Capabilities(image_input=True))
