# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The server of one replica: takes requests, makes batches, and keeps generation, syncs and sleep apart.

An ordinary class of coroutines, which verl runs as a Ray actor. Everything that touches the device runs in one thread
of its own, so that the event loop answers while a batch is generated or a bucket of weights is copied, and the device
is chosen for one thread only. Where verl calls a method with vLLM's server in mind, name and meaning are vLLM's.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from verl_hw_core.errors import GenerationError
from verl_hw_core.rollout.batching import Gate, Request, take_batch
from verl_hw_core.rollout.sampling import SamplingParams, parse, prompt_key, request_seed
from verl_hw_core.rollout.settings import Settings

if TYPE_CHECKING:
    from verl_hw_core.rollout.model import BringupModel
    from verl_hw_core.rollout.weights import Piece

P = ParamSpec("P")
T = TypeVar("T")
_MOST_WINDOWS = 20  # a trickle of requests does not hold a batch up for longer


class BringupServer:
    """Answers requests with one model.

    Args:
        build: Builds the model; called in the device's thread by :meth:`launch`.
        settings: Our own settings.
        rollout: verl's ``RolloutConfig``; ``max_model_len`` must be set.
        completion: Makes the answer that verl expects, ``TokenOutput``.
        count: Number of earlier requests with a key in a step, :class:`~verl_hw_core.rollout.sampling.PromptCounter`.
        sleep_level: What :meth:`sleep` does: 0 nothing, 1 weights to the host, 2 weights dropped.
        profiler: Functions that open and close the profiler's capture range.
    """

    def __init__(
        self,
        build: Callable[[], "BringupModel"],
        settings: Settings,
        rollout: Any,
        completion: Callable[..., Any],
        count: Callable[[int | None, str], Any],
        sleep_level: int,
        profiler: tuple[Callable[[], None], Callable[[], None]],
    ) -> None:
        self._build = build
        self._settings = settings
        self._rollout = rollout
        self._completion = completion
        self._count = count
        self._sleep_level = sleep_level
        self._profiler = profiler
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rollout-device")
        self._gate = Gate()
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []
        self._arrived = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._device = asyncio.Lock()  # held by a batch, and by a sync from its beginning to its end
        self._syncing = False
        self._global_steps: int | None = None
        self._model: BringupModel
        self._batches: asyncio.Task[None]

    async def launch(self) -> None:
        """Build the model and start to answer."""
        self._model = await self._on_device(self._build)
        self._batches = asyncio.create_task(self._serve())

    async def _on_device(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: function(*args, **kwargs))

    # Requests

    async def generate(
        self,
        prompt_ids: Sequence[int],
        sampling_params: dict[str, Any],
        request_id: str,
        image_data: Any = None,
        video_data: Any = None,
        audio_data: Any = None,
        mm_processor_kwargs: Any = None,
    ) -> Any:
        """Answer one request.

        Args:
            prompt_ids: Tokens of the prompt.
            sampling_params: See :func:`verl_hw_core.rollout.sampling.parse`.
            request_id: Name for :meth:`abort_request`.
            image_data: Must be empty, as video_data and audio_data.
            video_data: Must be empty.
            audio_data: Must be empty.
            mm_processor_kwargs: Of no consequence without such data.

        Returns:
            verl's ``TokenOutput``; an aborted request has the tokens so far and stop_reason ``"aborted"``.

        Raises:
            SamplingParameterError: A sampling parameter is unknown or wrong.
            GenerationError: The prompt is too long, empty or not text, or the model's output is not finite.
            RolloutNotReadyError: The weights are not there.
        """
        if any(data for data in (image_data, video_data, audio_data)):
            raise GenerationError("the bring-up rollout serves text only; the request holds images, video or audio")
        prompt = [int(token) for token in prompt_ids]
        params = self._params(prompt, sampling_params)
        key = prompt_key(prompt, params)
        while await self._gate.admitted():
            numbers = random.Random(await self._seed(params, key))  # noqa: S311 - sampling, no secret
            if self._gate.is_open:
                break
        else:
            return self._answer(Request(request_id, prompt, params, random.Random(0)))  # noqa: S311
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        request = Request(request_id, prompt, params, numbers, done=done)
        self._waiting.append(request)
        self._drained.clear()
        self._arrived.set()
        try:
            await done
        except asyncio.CancelledError:
            self._abort(request)  # nobody waits for it any more
            raise
        return self._answer(request)

    def _params(self, prompt: list[int], given: dict[str, Any]) -> SamplingParams:
        rollout = self._rollout
        room = rollout.max_model_len - len(prompt)
        if not prompt or room < 1:
            raise GenerationError(
                f"a prompt of {len(prompt)} tokens: it must have at least one and leave room for an answer within "
                f"rollout.max_model_len={rollout.max_model_len}"
            )
        budget = min(rollout.response_length, rollout.prompt_length + rollout.response_length - len(prompt))
        given = {"repetition_penalty": rollout.repetition_penalty, **given}
        return parse(given, max_tokens=budget, room=room, ignore_eos=rollout.ignore_eos)

    async def _seed(self, params: SamplingParams, key: str) -> int:
        if params.seed is not None:
            return params.seed
        step = self._global_steps
        return request_seed(self._rollout.seed, step, key, await self._count(step, key))

    def _answer(self, request: Request) -> Any:
        return self._completion(
            token_ids=request.token_ids,
            log_probs=request.log_probs if request.params.logprobs else None,
            stop_reason="completed" if request.complete else "aborted",
            num_preempted=0,
            extra_fields={"global_steps": self._global_steps},
        )

    async def _serve(self) -> None:
        while True:
            await self._arrived.wait()
            await self._until_quiet()
            async with self._device:
                await self._run_batch()

    async def _until_quiet(self) -> None:
        """Wait until no request has come for a window: a batch's requests arrive within milliseconds of each other."""
        for _ in range(_MOST_WINDOWS):
            before = len(self._waiting)
            await asyncio.sleep(self._settings.batch_window_seconds)
            if len(self._waiting) in (0, before) or len(self._waiting) >= self._rollout.max_num_seqs:
                return

    async def _run_batch(self) -> None:
        self._running = take_batch(
            self._waiting, max_sequences=self._rollout.max_num_seqs, max_padded_tokens=self._settings.max_padded_tokens
        )
        if not self._waiting:
            self._arrived.clear()
        if not self._running:  # aborted meanwhile
            return
        failure = None
        try:
            await self._on_device(self._model.generate, self._running)
        except Exception as error:  # noqa: BLE001 - every caller gets it; the server lives on
            failure = error
        for request in self._running:
            _settle(request, failure)
        self._running = []
        if not self._waiting:
            self._drained.set()

    # Aborting

    async def abort_all_requests(self, reject_request: bool = False) -> dict[str, Any]:
        """End all requests where they are and take no more until :meth:`resume_generation`.

        Args:
            reject_request: Requests that come meanwhile are answered as aborted and do not wait.
        """
        self._gate.close(reject=reject_request)
        ended = [*self._waiting, *self._running]
        for request in ended:
            self._abort(request)
        await self._drained.wait()
        return {"aborted_count": len(ended), "request_ids": [request.request_id for request in ended]}

    async def abort_request(self, request_id: str) -> dict[str, Any]:
        """End one request where it is."""
        for request in (*self._waiting, *self._running):
            if request.request_id == request_id:
                self._abort(request)
                return {"aborted": True, "request_id": request_id}
        return {"aborted": False, "request_id": request_id, "error": f"Request {request_id} not found"}

    def _abort(self, request: Request) -> None:
        request.aborted = True
        if request in self._waiting:
            self._waiting.remove(request)
            _settle(request, None)
            if not self._waiting and not self._running:
                self._drained.set()

    async def resume_generation(self) -> None:
        """Take requests again."""
        self._gate.open()

    # Weights and memory

    async def begin_weights(self) -> None:
        """Begin a sync: the running batch ends first, and no other starts before the sync has ended."""
        if not self._syncing:
            await self._device.acquire()
            self._syncing = True
        try:
            await self._on_device(self._model.begin_sync)
        except BaseException:
            self._end_sync()
            raise

    async def load_weights(self, pieces: "Sequence[Piece]") -> None:
        """Take a bucket."""
        await self._on_device(self._model.load, pieces)

    async def finish_weights(self, global_steps: int | None) -> int:
        """End the sync; the weights are those of step ``global_steps``. Returns the number of tensors."""
        try:
            count = await self._on_device(self._model.finish_sync)
        finally:
            self._end_sync()
        if global_steps is not None:
            self._global_steps = global_steps
        return count

    async def cancel_weights(self, reason: str) -> None:
        """Give the sync up: requests fail with the reason until another sync succeeds."""
        await self._on_device(self._model.cancel_sync, reason)
        self._end_sync()

    def _end_sync(self) -> None:
        if self._syncing:
            self._syncing = False
            self._device.release()

    async def set_global_steps(self, global_steps: int) -> None:
        """Say which step the weights are of."""
        self._global_steps = global_steps

    async def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Bring weights back; the key-value cache lives within a batch and needs nothing."""
        if self._sleep_level and (tags is None or "weights" in tags):
            async with self._device:
                await self._on_device(self._model.wake)

    async def sleep(self) -> None:
        """Answer what has come, then free the device."""
        if self._sleep_level:
            await self._drained.wait()
            async with self._device:
                await self._on_device(self._model.sleep, self._sleep_level)

    async def release_kv_cache(self) -> None:
        """Wait until no batch, and so no key-value cache, is there; return its memory to the device."""
        await self._drained.wait()
        await self._on_device(self._model.release_memory)

    async def resume_kv_cache(self) -> None:
        """Nothing to bring back: a batch makes its own cache."""

    async def clear_kv_cache(self) -> None:
        """Nothing to clear: no cache outlives its batch, so none was computed with older weights."""

    async def start_profile(self, **_: Any) -> None:
        """Open the profiler's capture range, where the platform has one."""
        await self._on_device(self._profiler[0])

    async def stop_profile(self) -> None:
        """Close the profiler's capture range."""
        await self._on_device(self._profiler[1])


def _settle(request: Request, error: Exception | None) -> None:
    if request.done is None or request.done.done():  # done: its caller has gone
        return
    if error is None:
        request.done.set_result(None)
    else:
        request.done.set_exception(error)
