# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout's server: batches, aborts, syncs and sleep, with requests in flight. No Ray."""

import asyncio
from collections import deque

import pytest
from machine_speed import scaled

pytest.importorskip("torch")
from rolloutkit import request, served, sync, tiny_model, tiny_module, tiny_server, trainer_log_probs

from verl_hw_core.errors import GenerationError, RolloutNotReadyError, SamplingParameterError
from verl_hw_core.rollout.batching import take_batch
from verl_hw_core.rollout.sampling import PromptCounter

PROMPT = [9, 10, 11]


class Watched:
    """A model whose batches are noted; each waits until the test lets it go on."""

    def __init__(self, model=None, held=False):
        import threading

        self._model = model or tiny_model()
        self.batches = []
        self.calls = []
        self.go = threading.Event()
        self.begun = threading.Event()
        if not held:
            self.go.set()

    def generate(self, batch):
        self.batches.append([one.request_id for one in batch])
        self.calls.append("generate")
        self.begun.set()
        assert self.go.wait(scaled(30))
        self._model.generate(batch)

    def __getattr__(self, name):
        def called(*args):
            self.calls.append(name)
            return getattr(self._model, name)(*args)

        return called


def ask(server, *names, prompt=PROMPT, **given):
    params = {"logprobs": True, **given}
    return [asyncio.create_task(server.generate(prompt, dict(params), name)) for name in names]


async def until(event):
    assert await asyncio.to_thread(event.wait, scaled(30))


def test_requests_that_arrive_together_share_a_batch():
    watched = Watched()

    async def main(server):
        return await asyncio.gather(*ask(server, "a", "b", "c"), *ask(server, "d", temperature=0.0))

    outputs = served(main, tiny_server(watched))
    assert watched.batches == [["a", "b", "c", "d"]]
    assert {output.stop_reason for output in outputs} == {"completed"}
    module = tiny_module()
    for output in outputs:
        asked = request(PROMPT)
        asked.token_ids = output.token_ids
        assert output.log_probs == pytest.approx(trainer_log_probs(module, asked), abs=1e-5)


@pytest.mark.parametrize(
    ("bounds", "sizes"),
    [
        ({"max_sequences": 3, "max_padded_tokens": 10_000}, [3, 2]),
        ({"max_sequences": 9, "max_padded_tokens": 60}, [4, 1]),
        ({"max_sequences": 9, "max_padded_tokens": 1}, [1, 1, 1, 1, 1]),
    ],
)
def test_a_batch_is_bounded_by_sequences_and_by_padded_tokens(bounds, sizes):
    waiting = deque(request(range(3), name=str(index)) for index in range(5))
    found = []
    while waiting:
        found.append(take_batch(waiting, **bounds))
    assert [len(batch) for batch in found] == sizes
    assert [one.request_id for batch in found for one in batch] == list("01234")


def test_one_long_prompt_does_not_blow_a_batch_up():
    waiting = deque([request(range(3)), request(range(80)), request(range(3))])
    assert len(take_batch(waiting, max_sequences=9, max_padded_tokens=100)) == 1
    assert len(take_batch(waiting, max_sequences=9, max_padded_tokens=100)) == 1


def test_more_requests_than_a_batch_holds_are_all_answered():
    watched = Watched()

    async def main(server):
        return await asyncio.gather(*ask(server, *map(str, range(20))))

    assert len(served(main, tiny_server(watched, max_num_seqs=6))) == 20
    assert max(map(len, watched.batches)) <= 6


class TestSeeds:
    def answers(self, names, *, one_by_one=False, model=None, counter=None, step=None, **given):
        async def main(server):
            if step is not None:
                await server.set_global_steps(step)
            if one_by_one:
                return [await ask(server, name, **given)[0] for name in names]
            return await asyncio.gather(*ask(server, *names, **given))

        server = tiny_server(model or tiny_model(), counter=counter)
        return [tuple(output.token_ids) for output in served(main, server)]

    def test_a_run_repeats_whatever_the_batches(self):
        together = self.answers("abcdef")
        assert len(set(together)) > 1, "each request of a prompt has its own numbers"
        assert sorted(self.answers("fedcba", one_by_one=True)) == sorted(together)

    def test_replicas_share_the_count(self):
        counter = PromptCounter()
        halves = self.answers("abc", counter=counter) + self.answers("def", counter=counter)
        assert sorted(halves) == sorted(self.answers("abcdef"))

    def test_another_step_draws_other_numbers(self):
        assert self.answers("abc", step=1) != self.answers("abc", step=2)
        assert self.answers("abc", step=1) == self.answers("abc", step=1)

    def test_a_requests_own_seed_is_all_that_counts(self):
        first = self.answers("ab", seed=5)
        assert first[0] == first[1] == self.answers("z", seed=5, step=9)[0]
        assert first[0] != self.answers("a", seed=6)[0]

    def test_the_count_forgets_old_steps_only(self):
        counter = PromptCounter()
        assert [counter.next(step, "key") for step in (None, 1, 1, 2, *range(3, 9), 8)] == [0, 0, 1, 0, *[0] * 6, 1]
        assert counter.next(1, "key") == 2
        assert counter.next(None, "key") == 0, "the oldest of nine steps was forgotten"


class TestAbort:
    def test_all_requests_return_what_they_have_and_later_ones_wait(self):
        watched = Watched(held=True)

        async def main(server):
            running = ask(server, "a", "b", ignore_eos=True)
            await until(watched.begun)
            waiting = ask(server, "c")
            await asyncio.sleep(0)
            aborting = asyncio.create_task(server.abort_all_requests())
            await asyncio.sleep(0)
            watched.go.set()
            report = await aborting
            assert sorted(report["request_ids"]) == ["a", "b", "c"]
            assert report["aborted_count"] == 3
            outputs = await asyncio.gather(*running, *waiting)
            assert {output.stop_reason for output in outputs} == {"aborted"}
            assert outputs[2].token_ids == []
            late = ask(server, "d")[0]
            await asyncio.sleep(0.05)
            assert not late.done()
            await server.resume_generation()
            return await late

        assert served(main, tiny_server(watched)).stop_reason == "completed"

    def test_partial_answers_and_their_rest_are_one_answer_of_that_model(self):
        watched = Watched()

        async def main(server):
            asked = ask(server, "a", ignore_eos=True, max_tokens=100)[0]
            await until(watched.begun)
            await server.abort_all_requests()
            await server.resume_generation()
            partial = await asked
            rest = 100 - len(partial.token_ids)
            return partial, await ask(server, "a", prompt=PROMPT + partial.token_ids, ignore_eos=True, max_tokens=rest)[
                0
            ] if rest else None

        partial, rest = served(main, tiny_server(watched, max_model_len=128))
        asked = request(PROMPT)
        asked.token_ids = partial.token_ids + (rest.token_ids if rest else [])
        found = partial.log_probs + (rest.log_probs if rest else [])
        assert len(found) == 100
        assert found == pytest.approx(trainer_log_probs(tiny_module(), asked), abs=1e-4)

    def test_late_requests_can_be_turned_away(self):
        async def main(server):
            await server.abort_all_requests()
            parked = ask(server, "a")[0]
            await asyncio.sleep(0.01)
            await server.abort_all_requests(reject_request=True)
            outputs = [await parked, await ask(server, "b")[0]]
            await server.resume_generation()
            return [*outputs, await ask(server, "c")[0]]

        outputs = served(main, tiny_server(tiny_model()))
        assert [output.stop_reason for output in outputs] == ["aborted", "aborted", "completed"]
        assert outputs[1].token_ids == []

    def test_a_request_waits_through_several_aborts(self):
        async def main(server):
            await server.abort_all_requests()
            waiting = ask(server, "a")[0]
            await asyncio.sleep(0.01)
            await server.abort_all_requests()
            await server.resume_generation()
            return await waiting

        assert served(main, tiny_server(tiny_model())).stop_reason == "completed"

    def test_one_request(self):
        watched = Watched(held=True)

        async def main(server):
            asked = ask(server, "a", "b", ignore_eos=True)
            await until(watched.begun)
            assert (await server.abort_request("b"))["aborted"]
            assert not (await server.abort_request("nobody"))["aborted"]
            watched.go.set()
            return await asyncio.gather(*asked)

        first, second = served(main, tiny_server(watched))
        assert (first.stop_reason, second.stop_reason) == ("completed", "aborted")

    def test_a_caller_that_goes_away_is_not_generated_for(self):
        watched = Watched(held=True)

        async def main(server):
            running = ask(server, "a")[0]
            await until(watched.begun)
            gone = ask(server, "gone")[0]
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.sleep(0)
            watched.go.set()
            await running
            await asyncio.gather(*ask(server, "b"))

        served(main, tiny_server(watched))
        assert watched.batches == [["a"], ["b"]]


class TestSyncs:
    def test_no_batch_runs_while_weights_come(self):
        watched = Watched(tiny_model(loaded=False))

        async def main(server):
            await sync(server, tiny_module(7).state_dict(), step=1)
            first = await ask(server, "a")[0]
            await server.begin_weights()
            waiting = ask(server, "b")[0]
            await asyncio.sleep(0.05)
            assert not waiting.done()
            await sync(server, tiny_module(8).state_dict(), step=2)
            return first, await waiting

        first, second = served(main, tiny_server(watched))
        assert (first.extra_fields["global_steps"], second.extra_fields["global_steps"]) == (1, 2)
        asked = request(PROMPT)
        asked.token_ids = second.token_ids
        assert second.log_probs == pytest.approx(trainer_log_probs(tiny_module(8), asked), abs=1e-5)

    def test_a_running_batch_ends_before_weights_come(self):
        watched = Watched(held=True)

        async def main(server):
            running = ask(server, "a")[0]
            await until(watched.begun)
            begun = asyncio.create_task(sync(server, tiny_module(7).state_dict()))
            await asyncio.sleep(0.05)
            watched.go.set()
            await asyncio.gather(running, begun)

        served(main, tiny_server(watched))
        assert watched.calls.index("generate") < watched.calls.index("begin_sync")

    def test_the_event_loop_answers_while_a_batch_runs(self):
        watched = Watched(held=True)

        async def main(server):
            asked = ask(server, "a")[0]
            await until(watched.begun)
            await asyncio.wait_for(server.set_global_steps(3), timeout=scaled(10))
            await asyncio.wait_for(server.clear_kv_cache(), timeout=scaled(10))
            watched.go.set()
            await asked

        served(main, tiny_server(watched))

    def test_requests_fail_with_the_reason_after_a_sync_that_was_cancelled(self):
        async def main(server):
            await server.begin_weights()
            waiting = ask(server, "a")[0]
            await server.cancel_weights("the trainer ran out of memory")
            with pytest.raises(RolloutNotReadyError, match="the trainer ran out of memory"):
                await waiting
            await sync(server, tiny_module(7).state_dict())
            return await ask(server, "b")[0]

        assert served(main, tiny_server(tiny_model())).stop_reason == "completed"

    def test_a_sync_without_a_step_keeps_the_step(self):
        async def main(server):
            await sync(server, tiny_module(7).state_dict(), step=4)
            await sync(server, tiny_module(7).state_dict(), step=None)
            return await ask(server, "a")[0]

        assert served(main, tiny_server(tiny_model())).extra_fields["global_steps"] == 4


class TestSleep:
    def test_what_has_come_is_answered_first(self):
        watched = Watched(held=True)

        async def main(server):
            asked = ask(server, "a", "b")
            await until(watched.begun)
            sleeping = asyncio.create_task(server.sleep())
            await asyncio.sleep(0.02)
            assert not sleeping.done()
            watched.go.set()
            await sleeping
            outputs = await asyncio.gather(*asked)
            assert {output.stop_reason for output in outputs} == {"completed"}
            with pytest.raises(RolloutNotReadyError, match="dropped"):
                await ask(server, "c")[0]
            await server.wake_up(tags=["weights"])
            with pytest.raises(RolloutNotReadyError, match="dropped"):
                await ask(server, "d")[0]
            await sync(server, tiny_module(7).state_dict())
            await server.wake_up(tags=["kv_cache"])
            return await ask(server, "e")[0]

        assert served(main, tiny_server(watched)).stop_reason == "completed"

    def test_sleep_level_1_keeps_the_weights(self):
        async def main(server):
            before = await ask(server, "a", seed=1)[0]
            await server.sleep()
            await server.wake_up()
            return before.token_ids, (await ask(server, "b", seed=1)[0]).token_ids

        before, after = served(main, tiny_server(tiny_model(), sleep_level=1))
        assert before == after

    def test_standalone_replicas_do_not_sleep(self):
        watched = Watched()

        async def main(server):
            await server.sleep()
            await server.release_kv_cache()
            await server.resume_kv_cache()
            await server.wake_up()
            return await ask(server, "a")[0]

        assert served(main, tiny_server(watched, sleep_level=0)).stop_reason == "completed"
        assert watched.calls == ["release_memory", "generate"]


class TestRequests:
    def refused(self, error, text, *args, model=None, **kwargs):
        async def main(server):
            with pytest.raises(error, match=text):
                await server.generate(*args, **kwargs)
            return await ask(server, "after")[0] if model is None else None

        after = served(main, tiny_server(model or tiny_model()))
        assert after is None or after.stop_reason == "completed"

    def test_too_long_or_empty(self):
        self.refused(GenerationError, "128 tokens", list(range(8, 72)) * 2, {}, "a")
        self.refused(GenerationError, "0 tokens", [], {}, "a")

    def test_images(self):
        self.refused(GenerationError, "text only", PROMPT, {}, "a", image_data=[object()])

    def test_unknown_parameters(self):
        self.refused(SamplingParameterError, "prompt_logprobs", PROMPT, {"prompt_logprobs": 1}, "a")

    def test_before_the_first_sync(self):
        self.refused(RolloutNotReadyError, "no weights", PROMPT, {}, "a", model=tiny_model(loaded=False))

    @pytest.mark.parametrize(("prompt", "limit"), [(3, 12), (40, 4), (43, 1), (60, 1)])
    def test_the_default_limit_is_the_one_of_verls_vllm(self, prompt, limit):
        async def main(server):
            return await ask(server, "a", prompt=[8] * prompt, ignore_eos=True)[0]

        assert len(served(main, tiny_server(tiny_model())).token_ids) == limit
