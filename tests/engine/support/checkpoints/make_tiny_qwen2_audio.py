"""Write a tiny Qwen2-Audio checkpoint of random weights: ``python make_tiny_qwen2_audio.py DIRECTORY [--seed 0]``.

A model that no plugin of ours knows: it hears and reads, and writes. The third-party example serves it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tiny_tokenizer import ROLES, Vocabulary, build_tokenizer, qwen_tokenizer_config, write_json, write_tokenizer
from transformers import GenerationConfig, Qwen2AudioConfig, Qwen2AudioForConditionalGeneration

SPECIAL = {
    151643: "<|endoftext|>",
    151644: "<|im_start|>",
    151645: "<|im_end|>",
    151646: "<|AUDIO|>",
    151647: "<|audio_bos|>",
    151648: "<|audio_eos|>",
}
VOCABULARY = Vocabulary(special=SPECIAL, plain={}, words=["the", "and", "you", "hello"], fixed=ROLES, size=151649)
ROWS = 152064
WEIGHTS = "model.safetensors"
"""transformers writes one ``model.`` more into its names than the published checkpoint has."""
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<|audio_bos|><|AUDIO|><|audio_eos|>{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def config() -> Qwen2AudioConfig:
    text = {
        "model_type": "qwen2",
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "vocab_size": ROWS,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    }
    audio = {"d_model": 64, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 64, "num_mel_bins": 128}
    return Qwen2AudioConfig(text_config=text, audio_config=audio, audio_token_index=151646)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    model = Qwen2AudioForConditionalGeneration(config()).to(torch.bfloat16)
    model.generation_config = GenerationConfig(eos_token_id=151645, pad_token_id=151643, do_sample=False)
    model.save_pretrained(arguments.directory)
    weights = {
        name.replace("model.model.model.", "model.model."): weight for name, weight in load_file(arguments.directory / WEIGHTS).items()
    }
    save_file(weights, arguments.directory / WEIGHTS, metadata={"format": "pt"})
    write_tokenizer(arguments.directory, build_tokenizer(VOCABULARY), qwen_tokenizer_config(VOCABULARY, chat_template=TEMPLATE))
    extractor = {
        "chunk_length": 30,
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": 128,
        "hop_length": 160,
        "n_fft": 400,
        "n_samples": 480000,
        "nb_max_frames": 3000,
        "padding_side": "right",
        "padding_value": 0.0,
        "processor_class": "Qwen2AudioProcessor",
        "return_attention_mask": True,
        "sampling_rate": 16000,
    }
    write_json(arguments.directory / "preprocessor_config.json", extractor)


if __name__ == "__main__":
    main()
