"""Write a tiny MiniCPM-o 4.5 checkpoint of random weights: ``python make_tiny_minicpmo.py DIRECTORY [--seed 0]``.

The classes that the checkpoint carries as remote code are the tests' own. Its vocoder is made by ``minicpmo_token2wav`` and needs the
platform plugin ``omni_cpu`` on PYTHONPATH, as the engine does that loads it.
"""

from __future__ import annotations

import argparse
import math
import shutil
from pathlib import Path

import numpy as np
import soundfile
import torch
from minicpmo_token2wav import write_token2wav
from safetensors.torch import save_file
from tiny_tokenizer import BYTES, Vocabulary, build_tokenizer, known_ids, write_json, write_tokenizer
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaModel, Qwen3Config, Qwen3ForCausalLM, SiglipVisionConfig, SiglipVisionModel, WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder

UNKNOWN = 128244
"""Stands where audio goes. This one, im_end, tts_bos and tts_eos vLLM-Omni knows by heart; nothing depends on the others."""
SPECIAL = {
    UNKNOWN: "<unk>",
    151643: "<|endoftext|>",
    151644: "<|im_start|>",
    151645: "<|im_end|>",
    151669: "<image>",
    151670: "</image>",
    151679: "<slice>",
    151680: "</slice>",
    151681: "<image_id>",
    151682: "</image_id>",
    151683: "<unit>",
    151684: "</unit>",
    151697: "<|audio_start|>",
    151698: "<|audio|>",
    151699: "<|audio_end|>",
    151700: "<|spk_bos|>",
    151701: "<|spk|>",
    151702: "<|spk_eos|>",
    151703: "<|tts_bos|>",
    151704: "<|tts_eos|>",
    151705: "<|listen|>",
    151706: "<|speak|>",
    151717: "<|turn_eos|>",
    151718: "<|chunk_eos|>",
    151719: "<|chunk_tts_eos|>",
    151720: "<|tts_pad|>",
}
PLAIN = {
    151657: "<tool_call>",
    151658: "</tool_call>",
    151665: "<tool_response>",
    151666: "</tool_response>",
    151667: "<think>",
    151668: "</think>",
}
WORDS = "user system assistant the and ing you are hello voice audio Ġthe Ġand Ġyou Ġis Ġto Ġof Ġa Ġin tool name argu ments function call"
ROWS = 151748
VOCABULARY = Vocabulary(special=SPECIAL, plain=PLAIN, words=WORDS.split(), size=ROWS)
HERE = Path(__file__).parent

HIDDEN = HEAD = 32
WIDTH = 128
"""Of the thinker: vLLM-Omni gives the resampler of images a head for every 128."""
QUERIES = 64
"""Tokens that the resampler makes of an image."""
CODES = 6562
"""6561 codes and the end."""
TALKER_TEXT_ROWS = 152064

LLM = {
    "vocab_size": ROWS,
    "hidden_size": WIDTH,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": HEAD,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-6,
    "attention_bias": False,  # chooses Qwen3, else vLLM-Omni builds a Qwen2
    "tie_word_embeddings": False,
}
WHISPER = {
    "d_model": HIDDEN,
    "encoder_layers": 1,
    "encoder_attention_heads": 1,
    "encoder_ffn_dim": 4 * HIDDEN,  # vLLM-Omni takes a quarter of it for the width
    "num_mel_bins": 80,
    "max_source_positions": 1500,
    "decoder_layers": 1,
    "decoder_attention_heads": 1,
    "decoder_ffn_dim": 4 * HIDDEN,
}
LLAMA = {
    "hidden_size": HIDDEN,
    "intermediate_size": 64,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "num_hidden_layers": 2,
    "max_position_embeddings": 4096,
}
TALKER = {
    **LLAMA,
    "model_type": "minicpmtts",
    "llm_dim": WIDTH,
    "num_audio_tokens": CODES,
    "num_text_tokens": TALKER_TEXT_ROWS,
    "num_vq": 1,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "audio_bos_token_id": 151687,
    "text_eos_token_id": 151692,
    "eos_token_id": CODES - 1,
    "vocab_size": CODES,
    "normalize_projected_hidden": True,
    "attention_type": "full_attention",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
SLICES = {"model_type": "minicpmv", "patch_size": 14, "max_slice_nums": 1, "scale_resolution": 448}
VISION = {
    "model_type": "siglip_vision_model",
    "hidden_size": 32,
    "image_size": 448,
    "patch_size": 14,
    "intermediate_size": 64,
    "num_attention_heads": 1,
    "num_hidden_layers": 1,
}
CONFIG = {
    **LLM,
    "architectures": ["MiniCPMO"],
    "model_type": "minicpmo",
    "version": "4.5",
    "transformers_version": "5.0.0",  # an older one makes transformers warn of a wrong regex at each load
    "auto_map": {"AutoConfig": "configuration_minicpmo.MiniCPMOConfig"},
    "hidden_act": "silu",
    "rope_theta": 1000000.0,
    "torch_dtype": "bfloat16",
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "pad_token_id": 151643,
    "query_num": QUERIES,
    "image_size": 448,
    "patch_size": 14,
    "drop_vision_last_layer": False,
    "batch_vision_input": True,
    "use_image_id": True,
    "vision_batch_size": 16,
    "slice_mode": True,
    "audio_pool_step": 5,
    "audio_chunk_length": 1.0,
    "stream_input": True,
    "init_vision": True,
    "init_audio": True,
    "init_tts": True,
    "slice_config": SLICES,
    "vision_config": VISION,
    "audio_config": {"model_type": "whisper", **WHISPER},
    "tts_config": TALKER,
}
PROCESSOR = {
    "processor_class": "MiniCPMOProcessor",
    "image_processor_type": "MiniCPMVImageProcessor",
    "feature_extractor_type": "WhisperFeatureExtractor",
    "max_slice_nums": 1,
    "scale_resolution": 448,
    "patch_size": 14,
    "use_image_id": True,
    "image_feature_size": QUERIES,
    "slice_mode": True,
    "version": 4.5,
    "norm_mean": [0.5] * 3,
    "norm_std": [0.5] * 3,
    "chunk_length": 30,
    "dither": 0.0,
    "feature_size": 80,
    "hop_length": 160,
    "n_fft": 400,
    "n_samples": 480000,
    "nb_max_frames": 3000,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": False,
    "sampling_rate": 16000,
}

Weights = dict[str, torch.Tensor]


def build_weights(known: list[int], speakable: list[int], generator: torch.Generator) -> Weights:
    """Return the weights of the thinker and of the talker."""
    weights = (
        llm_weights(known, speakable, generator)
        | ear_weights(generator)
        | eye_weights(generator)
        | talker_weights([*known, TALKER["audio_bos_token_id"], TALKER["text_eos_token_id"]], generator)
    )
    return {name: weight.detach().to(torch.bfloat16).contiguous().clone() for name, weight in weights.items()}


def llm_weights(known: list[int], speakable: list[int], generator: torch.Generator) -> Weights:
    """Return the language model: it says only what reads as text, and ends only if it is made to."""
    llm = Qwen3ForCausalLM(Qwen3Config(**LLM))
    randomize_layers(llm.model.layers, generator)
    with torch.no_grad():
        embedding = llm.model.embed_tokens.weight
        embedding.zero_()
        embedding[known] = torch.randn(len(known), WIDTH, generator=generator)
        llm.lm_head.weight.zero_()
        llm.lm_head.weight[speakable] = embedding[speakable]
    return _prefixed("llm", llm)


def ear_weights(generator: torch.Generator) -> Weights:
    """Return the audio encoder, louder than its position table: a reply depends on the audio."""
    encoder = WhisperEncoder(WhisperConfig(**WHISPER))
    randomize_layers(encoder.layers, generator)
    randomize(encoder.conv1.weight, generator, 3.0)
    randomize(encoder.conv2.weight, generator, 3.0)
    weights = _prefixed("apm", encoder)
    wider = _linear("audio_projection_layer.linear1", generator, rows=WIDTH)
    return weights | wider | _linear("audio_projection_layer.linear2", generator, 2.0, rows=WIDTH, columns=WIDTH)


def eye_weights(generator: torch.Generator) -> Weights:
    """Return the image encoder, and the resampler that makes a fixed number of tokens of an image: a reply depends on the image."""
    encoder = SiglipVisionModel(SiglipVisionConfig(**VISION))
    randomize_layers(encoder, generator)
    weights = {name: weight for name, weight in _prefixed("vpm", encoder).items() if not name.startswith("vpm.head.")}
    attention = torch.nn.MultiheadAttention(WIDTH, WIDTH // 128)
    randomize_layers(attention, generator)
    weights |= _prefixed("resampler.attn", attention)
    weights["resampler.query"] = torch.randn(QUERIES, WIDTH, generator=generator)
    weights["resampler.kv_proj.weight"] = randomize(torch.empty(WIDTH, HIDDEN), generator)
    weights["resampler.proj"] = randomize(torch.empty(WIDTH, WIDTH), generator)
    for norm in ("ln_q", "ln_kv", "ln_post"):
        weights |= {f"resampler.{norm}.weight": torch.ones(WIDTH), f"resampler.{norm}.bias": torch.zeros(WIDTH)}
    return weights


def talker_weights(known: list[int], generator: torch.Generator) -> Weights:
    """Return the talker; its head is weight-normed, in magnitude and direction."""
    backbone = LlamaModel(LlamaConfig(vocab_size=32000, **LLAMA))
    randomize_layers(backbone.layers, generator)
    rows = sorted(set(known))
    text = torch.zeros(TALKER_TEXT_ROWS, HIDDEN)
    text[rows] = torch.randn(len(rows), HIDDEN, generator=generator)
    weights = _prefixed("tts.model", backbone) | {"tts.emb_text.weight": text}
    weights |= _linear("tts.projector_semantic.linear1", generator, columns=WIDTH) | _linear("tts.projector_semantic.linear2", generator)
    weights["tts.emb_code.0.weight"] = torch.randn(CODES, HIDDEN, generator=generator)
    weights["tts.head_code.0.parametrizations.weight.original0"] = torch.full((CODES, 1), 2.0)
    weights["tts.head_code.0.parametrizations.weight.original1"] = torch.randn(CODES, HIDDEN, generator=generator)
    return weights


def randomize_layers(module: torch.nn.Module, generator: torch.Generator) -> None:
    """Make a stack of layers random, strong enough to win against the residual."""
    for name, weight in module.named_parameters():
        if weight.ndim > 1:
            strong = any(part in name for part in ("down_proj", "o_proj", "fc2"))
            randomize(weight, generator, 4.0 if strong else 1.0)


@torch.no_grad()
def randomize(weight: torch.Tensor, generator: torch.Generator, gain: float = 1.0) -> torch.Tensor:
    """Make one matrix random, so that its outputs are ``gain`` times as large as its inputs."""
    return weight.normal_(0.0, gain / math.sqrt(weight.numel() / weight.shape[0]), generator=generator)


def speakable_ids(tokenizer: Tokenizer, known: list[int]) -> list[int]:
    """Return the tokens that read as text by themselves: no marker, no control character, no piece of a character."""

    def is_text(token_id: int) -> bool:
        text = tokenizer.decode([token_id])
        return token_id < UNKNOWN and "\ufffd" not in text and (token_id >= BYTES or text.isprintable())

    return [token_id for token_id in known if is_text(token_id)]


def write_texts(directory: Path, tokenizer: Tokenizer) -> None:
    """Write every file that is not weights, and the remote code."""
    for module in HERE.glob("minicpmo_files/*.py"):
        shutil.copy(module, directory)
    template = (HERE / "minicpmo.jinja").read_text(encoding="utf-8")
    tokenizer_config = {
        "tokenizer_class": "MiniCPMOTokenizerFast",
        "auto_map": {"AutoTokenizer": [None, "tokenization_minicpmo_fast.MiniCPMOTokenizerFast"]},
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": "<|endoftext|>",
        "unk_token": "<unk>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 8192,
        "chat_template": template,
    }
    write_tokenizer(directory, tokenizer, tokenizer_config)
    write_json(directory / "preprocessor_config.json", PROCESSOR)
    write_json(directory / "config.json", CONFIG)
    write_json(directory / "generation_config.json", {"eos_token_id": [151704, 151645], "pad_token_id": 151643})


def write_reference_voice(path: Path, rate: int = 24000, seconds: float = 6.016) -> None:
    """Write the voice that speaks by default: a hum."""
    times = np.arange(int(seconds * rate)) / rate
    hum = 0.3 * np.sin(2 * np.pi * 180 * times) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * times))
    soundfile.write(path, hum.astype(np.float32), rate)


def main() -> None:
    """Write the checkpoint that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    directory: Path = arguments.directory
    vocoder = directory / "assets" / "token2wav"
    vocoder.mkdir(parents=True, exist_ok=True)

    tokenizer = build_tokenizer(VOCABULARY)
    write_texts(directory, tokenizer)
    known = [token_id for token_id in known_ids(tokenizer) if token_id != UNKNOWN]
    generator = torch.Generator().manual_seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    weights = build_weights(known, speakable_ids(tokenizer, known), generator)
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    write_reference_voice(directory / "assets" / "HT_ref_audio.wav")
    write_token2wav(vocoder, arguments.seed, generator)


def _prefixed(prefix: str, module: torch.nn.Module) -> Weights:
    return {f"{prefix}.{name}": weight for name, weight in module.state_dict().items()}


def _linear(name: str, generator: torch.Generator, gain: float = 1.0, *, rows: int = HIDDEN, columns: int = HIDDEN) -> Weights:
    return {f"{name}.weight": randomize(torch.empty(rows, columns), generator, gain), f"{name}.bias": torch.zeros(rows)}


if __name__ == "__main__":
    main()
