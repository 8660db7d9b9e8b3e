# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""The rollout's sampling loop: log-probs are the trainer's, and neither batch nor padding changes an answer."""

import pytest

torch = pytest.importorskip("torch")
from rolloutkit import EOS, VOCABULARY, request, tiny_model, tiny_module, trainer_log_probs  # noqa: E402

from verl_hw_core.errors import GenerationError  # noqa: E402

PROMPTS = [list(range(8, 8 + length)) for length in (1, 3, 4, 9, 17)]


def answers(requests, model=None):
    (model or tiny_model()).generate(requests)
    return [one.token_ids for one in requests]


def batch(**given):
    return [request(prompt, seed=index, **given) for index, prompt in enumerate(PROMPTS)]


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_log_probs_are_the_trainers(temperature):
    asked = batch(temperature=temperature, ignore_eos=True)
    answers(asked)
    module = tiny_module()
    for one in asked:
        assert one.log_probs == pytest.approx(trainer_log_probs(module, one, temperature), abs=1e-5)
        assert len(one.log_probs) == len(one.token_ids) == 12


def test_stale_weights_would_show_in_the_log_probs():
    asked = batch()
    answers(asked, tiny_model(seed=1))
    other = tiny_module(seed=0)
    assert (
        max(abs(a - b) for one in asked for a, b in zip(one.log_probs, trainer_log_probs(other, one), strict=True))
        > 0.1
    )


@pytest.mark.parametrize("given", [{}, {"top_p": 0.8}, {"repetition_penalty": 1.3}, {"temperature": 0.0}])
def test_an_answer_does_not_depend_on_its_batch(given):
    together = answers(batch(**given))
    alone = [answers([one])[0] for one in batch(**given)]
    assert together == alone


def test_rows_that_end_early_leave_the_others_alone():
    limits = [1, 12, 3, 12, 7]
    asked = [
        request(prompt, seed=index, ignore_eos=True, max_tokens=limit)
        for index, (prompt, limit) in enumerate(zip(PROMPTS, limits, strict=True))
    ]
    longest = answers(batch(ignore_eos=True))
    assert answers(asked) == [one[:limit] for one, limit in zip(longest, limits, strict=True)]


def test_other_numbers_give_other_answers():
    (first,), (second,) = (answers([request(PROMPTS[0], seed=seed)]) for seed in (1, 2))
    assert first != second


def test_greedy_follows_the_most_likely_token():
    asked = request(PROMPTS[2], temperature=0.0, ignore_eos=True)
    answers([asked])
    module = tiny_module()
    ids = list(asked.prompt_ids)
    for token in asked.token_ids:
        with torch.no_grad():
            assert token == module(torch.tensor([ids])).logits[0, -1].argmax().item()
        ids.append(token)


def test_repetition_penalty_counts_prompt_and_answer_but_not_padding():
    asked = [request(prompt, temperature=0.0, repetition_penalty=1e9, max_tokens=8) for prompt in PROMPTS]
    positive = tiny_module()
    with torch.no_grad():  # logits above zero, so that the penalty takes all of a token's chance
        positive.lm_head.bias = torch.nn.Parameter(torch.full((VOCABULARY,), 1000.0))
    for one, answer in zip(asked, answers(asked, tiny_model(module=positive)), strict=True):
        seen = one.prompt_ids + answer
        assert len(set(seen)) == len(seen), "a token of the prompt or of the answer came again"


@pytest.mark.parametrize("eos", sorted(EOS))
def test_each_end_token_ends_an_answer_and_is_part_of_it(eos):
    module = tiny_module()
    with torch.no_grad():
        module.lm_head.bias = torch.nn.Parameter(torch.zeros(VOCABULARY).index_fill(0, torch.tensor([eos]), 1e4))
    assert answers([request(PROMPTS[1])], tiny_model(module=module)) == [[eos]]
    going_on = request(PROMPTS[1], ignore_eos=True)
    assert answers([going_on], tiny_model(module=module)) == [[eos] * 12]


def test_stop_tokens_count_under_ignore_eos_too():
    full = answers([request(PROMPTS[3], ignore_eos=True)])[0]
    stop = full[4]
    stopped = answers([request(PROMPTS[3], ignore_eos=True, stop_token_ids=[stop])])[0]
    assert stopped == full[: full.index(stop) + 1]


def test_a_stop_text_ends_the_answer_behind_the_tokens_that_complete_it():
    full = answers([request(PROMPTS[3], ignore_eos=True)])[0]
    text = "".join(chr(0x100 + token) for token in full[3:5])
    stopped = request(PROMPTS[3], ignore_eos=True, stop=["nowhere", text])
    assert answers([stopped])[0] == full[:5]
    assert stopped.complete


def test_a_request_that_is_aborted_keeps_its_tokens_and_the_others_go_on():
    asked = batch(ignore_eos=True)

    class Aborting(type(asked[1].numbers)):
        drawn = 0

        def random(self):
            self.drawn += 1
            if self.drawn == 4:
                asked[1].aborted = True
            return super().random()

    asked[1].numbers = Aborting(1)
    lengths = [len(one) for one in answers(asked)]
    assert lengths == [12, 4, 12, 12, 12]
    assert [one.complete for one in asked] == [True, False, True, True, True]


def test_an_answer_that_ended_by_itself_stays_complete_when_it_is_aborted_too_late():
    asked = request(PROMPTS[0], max_tokens=1)
    answers([asked])
    asked.aborted = True
    assert asked.complete


def test_numbers_that_are_not_finite_are_an_error_that_names_the_request():
    module = tiny_module()
    with torch.no_grad():
        module.model.norm.weight.fill_(torch.nan)
    with pytest.raises(GenerationError, match="request broken"):
        answers([request(PROMPTS[0], name="broken")], tiny_model(module=module))


def test_raw_log_probs():
    asked = request(PROMPTS[2], temperature=0.5)
    answers([asked], tiny_model(raw_log_probs=True))
    assert asked.log_probs == pytest.approx(trainer_log_probs(tiny_module(), asked, 1.0), abs=1e-5)


def test_bfloat16_keeps_the_position_embedding_in_full_precision():
    model = tiny_model(dtype=torch.bfloat16)
    assert {one.dtype for one in model._module.parameters()} == {torch.bfloat16}
    assert {one.dtype for one in model._module.buffers()} == {torch.float32}
    answers(batch(), model)
