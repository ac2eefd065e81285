"""Workers that run vLLM-Omni's model runners on vLLM's CPU runner; the method order does the work."""

from __future__ import annotations

from typing import Any

import torch
from vllm.config import VllmConfig
from vllm.v1.worker.cpu_model_runner import CPUModelRunner, _torch_cuda_wrapper
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm_omni.worker.gpu_ar_model_runner import GPUARModelRunner
from vllm_omni.worker.gpu_generation_model_runner import GPUGenerationModelRunner
from vllm_omni.worker.mixins import OmniWorkerMixin

from omni_cpu import minicpmo_vocoder, scheduler_probe


class _OmniCPURunner:
    """Comes before the Omni runner, so that the buffers that it makes after vLLM's own set-up are kept once too, not once for each side."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device) -> None:
        with _torch_cuda_wrapper():
            super().__init__(vllm_config, device)
        self._postprocess_tensors()

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        compilation = self.compilation_config
        if compilation.max_cudagraph_capture_size is None:  # the CPU platform leaves it unset, and the talker compares it
            compilation.max_cudagraph_capture_size = 0
        super().load_model(*args, **kwargs)
        self._postprocess_tensors()

    def _init_device_properties(self) -> None:
        self.num_sms = None

    def _sync_device(self) -> None:
        pass


class CPUARModelRunner(_OmniCPURunner, GPUARModelRunner, CPUModelRunner):
    """Runs an autoregressive stage."""


class CPUGenerationModelRunner(_OmniCPURunner, GPUGenerationModelRunner, CPUModelRunner):
    """Runs a stage that makes its output in one pass."""


class _CPUOmniWorker(OmniWorkerMixin, CPUWorker):
    model_runner_cls: type[CPUModelRunner]

    def init_device(self) -> None:
        super().init_device()
        self.use_v2_model_runner = False
        self.model_runner = self.model_runner_cls(self.vllm_config, torch.device("cpu"))

    def scheduler_load(self) -> dict[str, int]:
        """Answer ``AsyncOmni.collective_rpc("scheduler_load")``."""
        return scheduler_probe.scheduler_load()


class CPUARWorker(_CPUOmniWorker):
    """The worker of an autoregressive stage."""

    model_runner_cls = CPUARModelRunner


class CPUGenerationWorker(_CPUOmniWorker):
    """The worker of a stage that makes its output in one pass."""

    model_runner_cls = CPUGenerationModelRunner


minicpmo_vocoder.install()
scheduler_probe.install()
