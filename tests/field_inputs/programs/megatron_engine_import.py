# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Import verl's Megatron engine class as a recipe does that subclasses it, after verl's engines.

Answers ``{"name": ..., "error": ..., "base of ours": ...}``; the last says whether the engine that verl builds
afterwards has this class behind it.
"""

import json

from said import text_of

answer = {"name": "", "error": "", "base of ours": False}
import verl.workers.engine  # noqa: E402 - what every worker of verl imports first

try:
    from verl.workers.engine.megatron.transformer_impl import MegatronEngineWithLMHead

    answer["name"] = MegatronEngineWithLMHead.__name__
    engine = verl.workers.engine.EngineRegistry.get_engine_cls("language_model", "megatron")
    answer["base of ours"] = issubclass(engine.load(), MegatronEngineWithLMHead)
except ImportError as error:
    answer["error"] = text_of(error)
print(json.dumps(answer))
