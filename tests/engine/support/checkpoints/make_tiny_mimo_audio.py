"""Write tiny stand-ins for MiMo-Audio and its audio tokenizer: ``python make_tiny_mimo_audio.py DIRECTORY [--seed 0] [--blocks 4]``.

Makes ``DIRECTORY/model`` and ``DIRECTORY/audio_tokenizer``. The token ids are the real ones, for vLLM-Omni knows several of them by heart.
The model has no chat template: the plugin brings one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from mimo_audio_codec import CODEC_CONFIG, codec_weights
from mimo_audio_lm import END_OF_SPEECH, END_OF_TEXT, SILENCE, START_OF_SPEECH, LanguageModel, lm_config
from safetensors.torch import save_file
from tiny_tokenizer import ROLES, Vocabulary, build_tokenizer, known_ids, qwen_tokenizer_config, write_json, write_tokenizer

SPECIAL = {
    151643: "<|endoftext|>",
    151644: "<|im_start|>",
    151645: "<|im_end|>",
    151665: "<|sosp|>",
    151666: "<|eosp|>",
    SILENCE: "<|empty|>",
    151668: "<|Human|>",
    151669: "<|SpeechLM|>",
    START_OF_SPEECH: "<|sostm|>",
    END_OF_SPEECH: "<|eostm|>",
    END_OF_TEXT: "<|eot|>",
}
PLAIN = {151657: "<tool_call>", 151658: "</tool_call>"}
SPOKEN = (
    "a all and are as ask at back be but by can come day do each end far few find for from get give go good great hand have hear help her "
    "here high him his how if in into is it just keep kind know last late let light like line little live long look make man many may me "
    "mean more most move much must my name near need new next no not now of off old on one only open or our out over own part place play "
    "point put read right room run said same say see set she short side small so some song sound soon speak still stop such take talk tell "
    "than that the them then there they thing think this time to too tree try turn two under up us use very voice wait walk want warm was "
    "water way we well what when where which while who why will wind with word work world year yes you your"
)
VOCABULARY = Vocabulary(special=SPECIAL, plain=PLAIN, words=["Ġ" + word for word in SPOKEN.split()], fixed=ROLES, size=max(SPECIAL) + 1)


def main() -> None:
    """Write the two checkpoints that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--blocks", type=int, default=4, help="blocks of five words and 0.8 s of sound in a reply, 2 to 12")
    arguments = parser.parse_args()
    model, codec = arguments.directory / "model", arguments.directory / "audio_tokenizer"
    model.mkdir(parents=True, exist_ok=True)
    codec.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(arguments.seed)

    tokenizer = build_tokenizer(VOCABULARY)
    write_tokenizer(model, tokenizer, qwen_tokenizer_config(VOCABULARY))
    write_json(model / "config.json", lm_config())
    write_json(model / "generation_config.json", {"bos_token_id": 151643, "eos_token_id": [151645], "pad_token_id": 151643})
    ids = tokenizer.get_vocab(with_added_tokens=True)
    language_model = LanguageModel(
        words=[ids["Ġ" + word] for word in SPOKEN.split()],
        known=known_ids(tokenizer),
        unspoken=[*VOCABULARY.added, *ROLES.values(), ids["Ċ"]],
        blocks=arguments.blocks,
        generator=generator,
    )
    save_file(language_model.weights(), model / "model.safetensors", metadata={"format": "pt"})
    write_json(codec / "config.json", CODEC_CONFIG)
    save_file(codec_weights(generator), codec / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
