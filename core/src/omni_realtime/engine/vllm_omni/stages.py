"""The stages of a running AsyncOmni."""

from __future__ import annotations

from typing import Any

from omni_realtime.engine.port import StageInfo


def stages_of(omni: Any) -> tuple[StageInfo, ...]:
    """What each stage is, in order."""
    return tuple(_stage(omni, index, config) for index, config in enumerate(omni.stage_configs))


def _stage(omni: Any, index: int, config: Any) -> StageInfo:
    return StageInfo(
        stage_id=index,
        model_stage=_find(config, "model_stage"),
        model_arch=_find(config, "model_arch"),
        final_output_type=omni.engine.get_stage_metadata(index).final_output_type,
    )


def _find(config: Any, name: str) -> str | None:
    """A field of a stage's configuration, which keeps such fields in one of three places."""
    for place in (config, _get(config, "engine_args"), _get(config, "stage_pipeline_config"), _get(config, "model_config")):
        if (value := _get(place, name)) is not None:
            return str(value)
    return None


def _get(place: Any, name: str) -> Any:
    return place.get(name) if hasattr(place, "get") else getattr(place, name, None)
