"""Lets PyPI's torchvision, a CUDA build, be imported beside a CPU build of torch.

Its operators do not load there, and its import then fails for want of two operator names. They are declared, without kernels, just before
that import. With a CUDA build of torch nothing is done. Being on PYTHONPATH, this reaches the engine's child processes too.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _DeclareTorchvisionOps:
    library: Any = None

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torchvision":
            return None
        sys.meta_path.remove(cls)
        import torch

        if torch.version.cuda is None and torch.version.hip is None:
            cls.library = torch.library.Library("torchvision", "DEF")  # the names live as long as this object
            cls.library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            cls.library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return importlib.util.find_spec(name)


sys.meta_path.insert(0, _DeclareTorchvisionOps)
