"""The vocoder of the tiny MiniCPM-o checkpoint, made small by the platform plugin."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import onnx
import torch
from omni_cpu import minicpmo_vocoder
from onnx import TensorProto, helper, numpy_helper

minicpmo_vocoder.install()

from hyperpyyaml import load_hyperpyyaml  # noqa: E402 - after the packages were made small
from s3tokenizer.model_v2 import S3TokenizerV2  # noqa: E402
from vllm_omni.model_executor.models.step_audio2.step_audio2_token2wav import _build_hift  # noqa: E402

MELS, SPEAKER = 80, 192
LARGE = 20000
"""Tensors with more numbers than this are views of one storage, so that files stay small."""


def write_token2wav(directory: Path, seed: int, generator: torch.Generator) -> None:
    """Write the flow, the HiFT vocoder, the speaker encoder and the speech tokenizer."""
    write_flow(directory, seed, generator)
    write_hift(directory / "hift.pt", seed, generator)
    write_campplus(directory / "campplus.onnx", generator)
    SpeechTokenizer(seed).write(directory / "speech_tokenizer_v2_25hz.onnx")


def write_flow(directory: Path, seed: int, generator: torch.Generator) -> None:
    """Write the flow that makes mel frames of codes."""
    description = directory / "flow.yaml"
    shutil.copy(Path(__file__).parent / "minicpmo_files" / "flow.yaml", description)
    torch.manual_seed(seed)
    with description.open(encoding="utf-8") as file:
        flow = load_hyperpyyaml(file)["flow"]
    with torch.no_grad():
        for weight in flow.parameters():
            if weight.ndim > 1:
                weight.normal_(0.0, 1.0 / math.sqrt(weight.numel() / weight.shape[0]), generator=generator)
    torch.save(flow.state_dict(), directory / "flow.pt")


def write_hift(path: Path, seed: int, generator: torch.Generator) -> None:
    """Write the vocoder that makes a wave of mel frames; vLLM-Omni fixes its size, 20.8 M parameters."""
    torch.manual_seed(seed)
    state = _build_hift().state_dict()
    storage = torch.randn(max(weight.numel() for weight in state.values()), generator=generator).half()

    def small(weight: torch.Tensor) -> torch.Tensor:
        if not weight.is_floating_point():
            return weight
        return storage[: weight.numel()].view(weight.shape) if weight.numel() > LARGE else weight.half()

    torch.save({name: small(weight) for name, weight in state.items()}, path)


def write_campplus(path: Path, generator: torch.Generator) -> None:
    """Write a stand-in for the speaker encoder: the mean over time, and a matrix."""
    matrix = (torch.randn(MELS, SPEAKER, generator=generator) / 9).numpy().astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["feats", "axes"], ["mean"], keepdims=0),
            helper.make_node("MatMul", ["mean", "matrix"], ["embedding"]),
        ],
        "speaker_encoder",
        [helper.make_tensor_value_info("feats", TensorProto.FLOAT, ["batch", "time", MELS])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", SPEAKER])],
        [numpy_helper.from_array(matrix, "matrix"), numpy_helper.from_array(np.array([1], dtype=np.int64), "axes")],
    )
    onnx.save(_model(graph), path)


class SpeechTokenizer:
    """A file that ``s3tokenizer`` takes for its V2 model: it finds the weights in the graph by the names of nodes and initializers.

    All matrices are int8 and lie in one piece of external data.
    """

    def __init__(self, seed: int) -> None:
        with torch.device("meta"):
            state = S3TokenizerV2("speech_tokenizer_v2_25hz").state_dict()
        self.shapes = {name: tuple(weight.shape) for name, weight in state.items()}
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[TensorProto] = []

    def write(self, path: Path) -> None:
        """Write the graph and, beside it, its data."""
        self.data = path.with_suffix(".data").name
        largest = max(math.prod(shape) for shape in self.shapes.values())
        signs = self.random.integers(-1, 2, largest, dtype=np.int8)
        (signs * (self.random.random(largest) < 1 / 32)).astype(np.int8).tofile(path.with_name(self.data))
        for name, shape in self.shapes.items():
            self._add(name, shape)
        graph = helper.make_graph(self.nodes, "speech_tokenizer", [], [], self.initializers)
        path.write_bytes(_model(graph).SerializeToString())

    def _add(self, name: str, shape: tuple[int, ...]) -> None:
        base, _, kind = name.removeprefix("encoder.").rpartition(".")
        if name.startswith("encoder.conv"):
            renamed = name.replace("encoder.", "encoders.")
            self._matrix(renamed, shape) if kind == "weight" else self._constant(renamed, shape, 0.0)
            self._node("Conv", f"/{name}", renamed)
        elif name == "quantizer._codebook.project_down.weight":
            self._matrix("onnx::MatMul_2536", shape[::-1])
            self._node("MatMul", "/quantizer/project_in/MatMul", "onnx::MatMul_2536")
        elif name == "quantizer._codebook.project_down.bias":
            self._constant("quantizer.project_in.bias", shape, 0.0)
            self._node("Add", "/quantizer/project_in/Add", "quantizer.project_in.bias")
        else:
            self._add_of_block(name, base.split("."), kind, shape)

    def _add_of_block(self, name: str, path: list[str], kind: str, shape: tuple[int, ...]) -> None:
        _, block, *parts = path  # blocks, 0, attn, query
        stem = f"/blocks.{block}/" + (f"mlp/mlp.{parts[1]}" if parts[0] == "mlp" else "/".join(parts))
        if parts[0] in {"attn_ln", "mlp_ln"}:
            self._constant(name, shape, 1.0 if kind == "weight" else 0.0)
            if kind == "bias":
                self._node("LayerNormalization", f"{stem}/LayerNormalization", name.replace("bias", "weight"), name)
        elif "fsmn_block" in parts:
            self._matrix(name, shape)
            self._node("Conv", f"{stem}/Conv", name)
        elif kind == "weight":
            self._matrix(name, shape[::-1])
            self._node("MatMul", f"{stem}/MatMul", name)
        else:
            self._constant(name, shape, 0.0)
            self._node("Add", f"{stem}/Add", name)

    def _node(self, operator: str, name: str, *inputs: str) -> None:
        self.nodes.append(helper.make_node(operator, ["x", *inputs], [f"{name}_out"], name=name))

    def _constant(self, name: str, shape: tuple[int, ...], value: float) -> None:
        self.initializers.append(numpy_helper.from_array(np.full(shape, value, dtype=np.float32), name))

    def _matrix(self, name: str, shape: tuple[int, ...]) -> None:
        tensor = TensorProto(name=name, data_type=TensorProto.INT8, dims=shape, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self.data), ("offset", "0"), ("length", str(math.prod(shape)))):
            tensor.external_data.add(key=key, value=value)
        self.initializers.append(tensor)


def _model(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
