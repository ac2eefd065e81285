"""Lets a test ask a stage's scheduler what runs there, through the worker beside it in the same process."""

from __future__ import annotations

from typing import Any

from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import Request

_scheduled: set[str] = set()
_schedulers: list[Scheduler] = []


def install() -> None:
    """Take note of the scheduler that this process makes, and of each request that it is given."""
    make, add = Scheduler.__init__, Scheduler.add_request

    def make_and_note(scheduler: Scheduler, *args: Any, **kwargs: Any) -> None:
        make(scheduler, *args, **kwargs)
        _schedulers.append(scheduler)

    def add_and_note(scheduler: Scheduler, request: Request) -> None:
        _scheduled.add(request.request_id)
        add(scheduler, request)

    Scheduler.__init__, Scheduler.add_request = make_and_note, add_and_note


def scheduler_load() -> dict[str, int]:
    """Return how many requests the stage has now, and how many it ever had."""
    return {"running": sum(len(scheduler.requests) for scheduler in _schedulers), "ever": len(_scheduled)}
