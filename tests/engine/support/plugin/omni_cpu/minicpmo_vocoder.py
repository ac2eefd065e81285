"""Makes MiniCPM-o's vocoder small enough for a CPU, in the worker as in the checkpoint's generator.

Nothing of vLLM-Omni is replaced: the fixed default size of ``s3tokenizer`` is made small, the package ``stepaudio2`` is opened without its
``__init__`` (which wants librosa), and the flow's decoder gets a class without the 2.2 GB of CUDA-graph buffers that are never read here.
"""

from __future__ import annotations

import importlib.util
import sys
import types

import torch

FRAMES_PER_SECOND = 50


def install() -> None:
    """Make the packages small, where they are installed: only MiniCPM-o needs them."""
    package = importlib.util.find_spec("stepaudio2")
    if package is None:
        return
    if "stepaudio2" not in sys.modules:
        bare = types.ModuleType("stepaudio2")
        bare.__path__ = list(package.submodule_search_locations)
        sys.modules["stepaudio2"] = bare
    from s3tokenizer.model_v2 import S3TokenizerV2

    config = S3TokenizerV2.__init__.__defaults__[0]
    config.n_audio_state, config.n_audio_head, config.n_audio_layer = 64, 1, 1


class SmallCFM(torch.nn.Module):
    """The flow's decoder, as ``flow.yaml`` of the tiny checkpoint names it: an estimator and the noise that it starts from."""

    def __init__(self, estimator: torch.nn.Module, inference_cfg_rate: float = 0.7, seconds: int = 60) -> None:
        super().__init__()
        for graph_buffer in ("att_cache_buffer", "cnn_cache_buffer"):  # 131 MB
            setattr(estimator, graph_buffer, torch.zeros(0))
        self.estimator = estimator
        self.inference_cfg_rate = inference_cfg_rate
        noise = torch.randn([1, estimator.out_channels, FRAMES_PER_SECOND * seconds], generator=torch.Generator().manual_seed(0))
        self.register_buffer("rand_noise", noise, persistent=False)
