"""Write a tiny Qwen3-Omni checkpoint of random weights: ``python make_tiny_qwen3_omni.py DIRECTORY [--seed 0]``.

The token ids are those of Qwen3-Omni-30B-A3B-Instruct, for vLLM-Omni knows several of them by heart; so the embedding has the real number
of rows, and all other sizes are tiny. Weights are loud enough that a reply depends on the prompt and on its audio, and can be heard.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from tiny_tokenizer import ROLES, Vocabulary, build_tokenizer, known_ids, qwen_tokenizer_config, write_json, write_tokenizer
from transformers import GenerationConfig, Qwen3OmniMoeConfig, Qwen3OmniMoeForConditionalGeneration

SPECIAL = {
    151643: "<|endoftext|>",
    151644: "<|im_start|>",
    151645: "<|im_end|>",
    151646: "<|object_ref_start|>",
    151647: "<|object_ref_end|>",
    151648: "<|box_start|>",
    151649: "<|box_end|>",
    151650: "<|quad_start|>",
    151651: "<|quad_end|>",
    151652: "<|vision_start|>",
    151653: "<|vision_end|>",
    151654: "<|vision_pad|>",
    151655: "<|image_pad|>",
    151656: "<|video_pad|>",
    151669: "<|audio_start|>",
    151670: "<|audio_end|>",
    151671: "<tts_pad>",
    151672: "<tts_text_bos>",
    151673: "<tts_text_eod>",
    151674: "<tts_text_bos_single>",
    151675: "<|audio_pad|>",
}
PLAIN = {
    151657: "<tool_call>",
    151658: "</tool_call>",
    151659: "<|fim_prefix|>",
    151660: "<|fim_middle|>",
    151661: "<|fim_suffix|>",
    151662: "<|fim_pad|>",
    151663: "<|repo_name|>",
    151664: "<|file_sep|>",
    151665: "<tool_response>",
    151666: "</tool_response>",
    151667: "<think>",
    151668: "</think>",
}
WORDS = "the and ing you are hello voice audio Ġthe Ġand Ġyou Ġis Ġto Ġof Ġa Ġin tool name argu ments function call"
VOCABULARY = Vocabulary(special=SPECIAL, plain=PLAIN, words=WORDS.split(), fixed=ROLES, size=max(SPECIAL) + 1)
ROWS = 152064

HIDDEN = HEAD = 32
"""vLLM's attention on a CPU takes no head smaller than 32."""
CODE_GROUPS = 16
CODEC_ROWS = 3072
WAVE_GAIN = 0.02

NAMED_TOKENS = {
    "image_token": "<|image_pad|>",
    "audio_token": "<|audio_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}
IMAGE_PROCESSOR = {
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
    "merge_size": 2,
    "patch_size": 16,
    "temporal_patch_size": 2,
    "size": {"shortest_edge": 3136, "longest_edge": 65536},
}
FEATURE_EXTRACTOR = {
    "feature_extractor_type": "WhisperFeatureExtractor",
    "chunk_length": 30,
    "dither": 0.0,
    "feature_size": 128,
    "hop_length": 160,
    "n_fft": 400,
    "n_samples": 480000,
    "nb_max_frames": 3000,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": True,
    "sampling_rate": 16000,
}
TOKEN_IDS = {
    "audio_token_id": 151675,
    "image_token_id": 151655,
    "video_token_id": 151656,
    "audio_start_token_id": 151669,
    "audio_end_token_id": 151670,
    "vision_start_token_id": 151652,
    "vision_end_token_id": 151653,
    "position_id_per_seconds": 13,
}


def rope(theta: float, **more: Any) -> dict[str, Any]:
    """Return rotary parameters."""
    return {"rope_type": "default", "rope_theta": theta, **more}


def decoder(**more: Any) -> dict[str, Any]:
    """Return the part that the three language models' configurations share."""
    return {
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": HEAD,
        "rope_parameters": rope(1000000.0),
        **more,
    }


def mixture(**more: Any) -> dict[str, Any]:
    """Return the configuration of a mixture of experts with positions in three dimensions."""
    return decoder(
        num_hidden_layers=2,
        moe_intermediate_size=32,
        num_experts=4,
        num_experts_per_tok=2,
        decoder_sparse_step=1,
        norm_topk_prob=True,
        max_position_embeddings=8192,
        rope_parameters=rope(1000000.0, mrope_section=[6, 5, 5], interleaved=True, mrope_interleaved=True),
        **more,
    )


def thinker_config() -> dict[str, Any]:
    """Return the configuration of the stage that hears and writes."""
    return {
        "text_config": mixture(
            vocab_size=ROWS, tie_word_embeddings=True, shared_expert_intermediate_size=0, eos_token_id=151645, pad_token_id=151643
        ),
        "audio_config": {
            "num_mel_bins": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 1,
            "encoder_ffn_dim": 64,
            "d_model": 32,
            "output_dim": HIDDEN,
            "n_window": 50,
            "n_window_infer": 800,
            "conv_chunksize": 500,
            "downsample_hidden_size": 16,
            "max_source_positions": 1500,
        },
        "vision_config": {
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 1,
            "out_hidden_size": HIDDEN,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0],
            "in_channels": 3,
            "image_size": 128,
            "apply_vit_abs_pos_embed": True,
            "tokens_per_second": 2,
        },
        "user_token_id": 872,
        "tie_word_embeddings": True,
        **TOKEN_IDS,
    }


def talker_config() -> dict[str, Any]:
    """Return the configuration of the stage that speaks in codes."""
    return {
        "text_config": mixture(vocab_size=CODEC_ROWS, shared_expert_intermediate_size=32),
        "code_predictor_config": decoder(vocab_size=2048, num_hidden_layers=1, num_code_groups=CODE_GROUPS, max_position_embeddings=256),
        "num_code_groups": CODE_GROUPS,
        "thinker_hidden_size": HIDDEN,
        "accept_hidden_layer": 1,
        "codec_bos_id": 2149,
        "codec_eos_token_id": 2150,
        "codec_pad_id": 2148,
        "codec_nothink_id": 2155,
        "codec_think_bos_id": 2156,
        "codec_think_eos_id": 2157,
        "speaker_id": {"chelsie": 2301, "ethan": 2302, "aiden": 2303},
        "spatial_merge_size": 2,
        **TOKEN_IDS,
    }


def code2wav_config() -> dict[str, Any]:
    """Return the configuration of the stage that turns codes into sound."""
    return {
        "codebook_size": 2048,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "num_hidden_layers": 1,
        "num_quantizers": CODE_GROUPS,
        "decoder_dim": 32,
        "sliding_window": 72,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
        "max_position_embeddings": 8000,
        "rope_parameters": rope(10000.0),
    }


def build_config() -> Qwen3OmniMoeConfig:
    """Return the whole configuration."""
    return Qwen3OmniMoeConfig(
        thinker_config=thinker_config(),
        talker_config=talker_config(),
        code2wav_config=code2wav_config(),
        enable_audio_output=True,
        im_start_token_id=151644,
        im_end_token_id=151645,
        tts_pad_token_id=151671,
        tts_bos_token_id=151672,
        tts_eos_token_id=151673,
        system_token_id=8948,
        user_token_id=872,
        assistant_token_id=77091,
    )


@torch.no_grad()
def randomize(model: Qwen3OmniMoeForConditionalGeneration, known: list[int], generator: torch.Generator) -> None:
    """Make every weight matrix random; only the rows of known tokens are large, so that no other is ever chosen."""
    embedding = model.thinker.model.embed_tokens.weight
    embedding.zero_()
    embedding[known] = torch.randn(len(known), HIDDEN, generator=generator)
    for name, weight in model.named_parameters():
        if weight.ndim > 1:
            randomize_weight(name, weight, generator)
    model.thinker.tie_weights()


def randomize_weight(name: str, weight: torch.Tensor, generator: torch.Generator) -> None:
    """Make one matrix random, at a scale that fits its place."""
    fan_in = weight.numel() / weight.shape[0]
    if name.startswith(("thinker.model.layers", "talker.model.layers", "talker.code_predictor")):
        weight.normal_(0.0, weight.shape[-1] ** -0.5, generator=generator)
        if "down_proj" in name or "o_proj" in name:  # else the residual wins, and a model with tied embeddings repeats its last token
            weight.mul_(4.0)
    elif name.startswith(("thinker.audio_tower", "thinker.visual")):
        weight.normal_(0.0, fan_in**-0.5, generator=generator)
        if "proj2" in name or "merger.mlp.2" in name:  # as loud as the text embeddings beside them
            weight.mul_(4.0)
    elif name.startswith(("talker.model.codec_embedding", "code2wav.code_embedding")):
        weight.normal_(0.0, 1.0, generator=generator)
    elif name.startswith(("talker.codec_head", "talker.text_projection", "talker.hidden_projection")):
        weight.normal_(0.0, 0.3, generator=generator)
    elif name.startswith("code2wav"):
        weight.normal_(0.0, fan_in**-0.5, generator=generator)
        if weight.shape[0] == 1:  # the last convolution: the wave stays within [-1, 1]
            weight.mul_(WAVE_GAIN)


def write_processors(directory: Path) -> None:
    """Write the files of the feature extractor and of the image and video processors."""
    image = {"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136, "max_pixels": 65536}
    video = {"video_processor_type": "Qwen2VLVideoProcessor", "processor_class": "Qwen3OmniMoeProcessor"}
    frames = {"min_frames": 4, "max_frames": 8, "do_sample_frames": False}
    write_json(directory / "preprocessor_config.json", {**FEATURE_EXTRACTOR, **video, **image, **IMAGE_PROCESSOR})
    write_json(directory / "video_preprocessor_config.json", {**video, **frames, **IMAGE_PROCESSOR})


def main() -> None:
    """Write the checkpoint that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    directory: Path = arguments.directory
    directory.mkdir(parents=True, exist_ok=True)

    tokenizer = build_tokenizer(VOCABULARY)
    template = Path(__file__).with_name("qwen3_omni.jinja").read_text(encoding="utf-8")
    # vLLM takes the template of the processor's file, but with tools only that of the tokenizer's
    write_json(directory / "chat_template.json", {"chat_template": template})
    named = {"chat_template": template, "extra_special_tokens": NAMED_TOKENS, **NAMED_TOKENS}
    write_tokenizer(directory, tokenizer, qwen_tokenizer_config(VOCABULARY, **named))
    write_processors(directory)

    torch.manual_seed(arguments.seed)
    model = Qwen3OmniMoeForConditionalGeneration(build_config()).eval()
    randomize(model, known_ids(tokenizer), torch.Generator().manual_seed(arguments.seed))
    model.generation_config = GenerationConfig(eos_token_id=151645, pad_token_id=151643)
    model.to(torch.bfloat16).save_pretrained(directory)


if __name__ == "__main__":
    main()
