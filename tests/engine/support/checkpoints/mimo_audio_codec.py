"""The tiny MiMo audio tokenizer: 24 kHz waves to codes, and back."""

from __future__ import annotations

import math

import torch

WIDTH, HEADS, FEED_FORWARD = 32, 2, 64
VOCODER_WIDTH, VOCODER_FEED_FORWARD, WINDOW, MELS = 32, 64, 960, 80
CODEBOOKS = [1024, 1024] + [128] * 6

CODEC_CONFIG = {
    "architectures": ["MiMoAudioTokenizer"],
    "model_type": "mimo_audio_tokenizer",
    "torch_dtype": "float32",
    "max_audio_seconds": 1800,
    "stride_size": 2,
    "avg_pooler": 2,
    "d_model": WIDTH,
    "scale_embedding": False,
    "kernel_size": 3,
    "activation_function": "gelu",
    "encoder_layers": 2,
    "encoder_skip_layer_id": 1,
    "encoder_attention_heads": HEADS,
    "encoder_ffn_dim": FEED_FORWARD,
    "encoder_causal": False,
    "encoder_attn_window_size": [-1, -1],
    "decoder_layers": 1,
    "decoder_attention_heads": HEADS,
    "decoder_ffn_dim": FEED_FORWARD,
    "decoder_kernel_size": 3,
    "decoder_stride_size": 2,
    "decoder_causal": True,
    "decoder_attn_window_size": [-1, -1],
    "nfft": WINDOW,
    "vocoder_dim": VOCODER_WIDTH,
    "vocoder_intermediate_dim": VOCODER_FEED_FORWARD,
    "vocoder_num_layers": 1,
    "n_mels": MELS,
    "sampling_rate": 24000,
    "hop_length": 240,
    "window_size": WINDOW,
    "vocoder_padding": "same",
    "fmin": 0,
    "fmax": None,
    "num_quantizers": len(CODEBOOKS),
    "codebook_size": CODEBOOKS,
    "threshold_ema_dead_code": 10,
    "position_embedding_type": "rope",
    "rope_theta": 10000,
    "rope_type": "default",
    "ln_type": "LayerNorm",
    "vocoder_attention_heads": 2,
    "vocoder_attn_window_size": [40, 10],
}

Weights = dict[str, torch.Tensor]


def codec_weights(generator: torch.Generator) -> Weights:
    """Return all weights by their names in the checkpoint, float32."""
    weights: Weights = {}
    _encoder(weights, generator)
    _decoder(weights, generator)
    return {name: weight.float().contiguous() for name, weight in weights.items()}


def _encoder(weights: Weights, generator: torch.Generator) -> None:
    _dense(weights, generator, "encoder.conv1", WIDTH, MELS, 3)
    _dense(weights, generator, "encoder.conv2", WIDTH, WIDTH, 3, gain=2.0)
    for layer in range(2):
        _layer(weights, generator, f"encoder.layers.{layer}", WIDTH, FEED_FORWARD)
    _norm(weights, "encoder.layer_norm", WIDTH)
    _dense(weights, generator, "encoder.down_sample_layer.0", WIDTH, WIDTH, 2, gain=2.0, bias=False)
    _norm(weights, "encoder.down_sample_norm", WIDTH)
    for level, rows in enumerate(CODEBOOKS):
        codebook = f"encoder.quantizer.vq.layers.{level}._codebook"
        weights[f"{codebook}.embed"] = torch.randn(rows, WIDTH, generator=generator) * 0.8**level
        weights[f"{codebook}.embed_avg"] = weights[f"{codebook}.embed"].clone()
        weights[f"{codebook}.inited"], weights[f"{codebook}.cluster_size"] = torch.ones(1), torch.ones(rows)


def _decoder(weights: Weights, generator: torch.Generator) -> None:
    _upsampling(weights, generator, "decoder.dconv1", WIDTH, WIDTH, 2)
    _layer(weights, generator, "decoder.layers.0", WIDTH, FEED_FORWARD)
    _norm(weights, "decoder.layer_norm", WIDTH)
    _upsampling(weights, generator, "decoder.dconv2", WIDTH, MELS, 3)
    _dense(weights, generator, "decoder.vocoder.embeddings", VOCODER_WIDTH, MELS, bias=False)
    _layer(weights, generator, "decoder.vocoder.layers.0", VOCODER_WIDTH, VOCODER_FEED_FORWARD)
    _norm(weights, "decoder.vocoder.layer_norm", VOCODER_WIDTH)
    head = "decoder.vocoder.head.out"
    _dense(weights, generator, head, WINDOW + 2, VOCODER_WIDTH, gain=0.5)
    half = (WINDOW + 2) // 2
    weights[f"{head}.weight"][half:] *= 6.0  # phases all round the circle
    weights[f"{head}.bias"][:half] = math.log(3.0)  # loud enough to hear, within [-1, 1]
    weights["decoder.vocoder.head.istft.window"] = torch.hann_window(WINDOW)


def _layer(weights: Weights, generator: torch.Generator, prefix: str, width: int, feed_forward: int) -> None:
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        _dense(weights, generator, f"{prefix}.self_attn.{name}", width, width, bias=name != "k_proj")
    _norm(weights, f"{prefix}.self_attn_layer_norm", width)
    _dense(weights, generator, f"{prefix}.fc1", feed_forward, width)
    _dense(weights, generator, f"{prefix}.fc2", width, feed_forward)
    _norm(weights, f"{prefix}.final_layer_norm", width)


def _dense(weights: Weights, generator: torch.Generator, name: str, *shape: int, gain: float = 1.0, bias: bool = True) -> None:
    weights[f"{name}.weight"] = torch.randn(*shape, generator=generator) * gain / math.sqrt(math.prod(shape[1:]))
    if bias:
        weights[f"{name}.bias"] = torch.zeros(shape[0])


def _upsampling(weights: Weights, generator: torch.Generator, prefix: str, *shape: int) -> None:
    weights[f"{prefix}.conv.weight"] = torch.randn(*shape, generator=generator) / math.sqrt(shape[0])
    weights[f"{prefix}.conv.bias"] = torch.zeros(shape[1])
    _norm(weights, f"{prefix}.norm", shape[1])


def _norm(weights: Weights, name: str, width: int) -> None:
    weights[f"{name}.weight"], weights[f"{name}.bias"] = torch.ones(width), torch.zeros(width)
