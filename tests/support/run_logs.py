# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Write ``(step, metrics)`` records as the logs that verl and its trackers leave."""

import csv
import json
import math


def console(records, path, *, before="", after="", prefix="(TaskRunner pid=4321) "):
    """As verl's LocalLogger prints them, through Ray, between other output."""
    lines = [prefix + _step_line(step, metrics) for step, metrics in records]
    path.write_text(before + "".join(line + "\n" for line in lines) + after, encoding="utf-8")
    return path


def _step_line(step, metrics):
    return " - ".join([f"step:{step}", *(f"{name}:{value!r}" for name, value in metrics.items())])


def file_logger(records, path):
    """As verl's FileLogger writes them: NaN becomes null."""
    lines = [json.dumps({"step": step, "data": _nulled(metrics)}) for step, metrics in records]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def _nulled(metrics):
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def events(records, folder):
    """As torch's SummaryWriter writes them, with tensorboard's own writer."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step, metrics in records:
        for name, value in metrics.items():
            summary = Summary(value=[Summary.Value(tag=name, simple_value=value)])
            writer.add_event(Event(step=step, wall_time=1000.0 + step, summary=summary))
    writer.close()
    return folder


def wandb_chart(records, path, metric, run="qwen3-grpo"):
    """A chart exported from wandb's page: one metric, with its lowest and highest value."""
    column = f"{run} - {metric}"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(["Step", column, f"{column}__MIN", f"{column}__MAX"])
        writer.writerows([step, *[metrics[metric]] * 3] for step, metrics in records)
    return path


def swanlab_chart(records, path, metric, run="qwen3-grpo"):
    """A chart exported from SwanLab's page: one metric and the times."""
    column = f"{run}-{metric}"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", column, f"{column}_timestamp"])
        writer.writerows([step, metrics[metric], 1700000000000 + step] for step, metrics in records)
    return path


def history(records, path):
    """A whole run as a table of wandb's or SwanLab's API, written as CSV."""
    names = list(records[0][1])
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["_step", "_runtime", *names])
        writer.writerows([step, 30 * step, *(metrics[name] for name in names)] for step, metrics in records)
    return path
