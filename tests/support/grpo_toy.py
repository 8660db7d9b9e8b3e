# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""GRPO on a toy in numpy, with faults of a device stack planted where they would really happen.

A policy with one table of logits per prompt and position writes answers of up to eight tokens; the reward of an answer
is the share of its places that hold one of the prompt's wanted tokens. The loop is that of the field's baseline: groups
of five samples, advantages normalized within the group, KL loss against the first weights, several optimizer steps of
clipped policy gradients a batch, AdamW with gradient clipping. What it logs has verl's names and meaning.
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np

PROMPTS, LONGEST, VOCABULARY, END = 16, 8, 12, 0
WANTED = 3
GROUP = 5
WORLD_SIZE = 8
LEARNING_RATE = 0.03
KL_COEFFICIENT = 0.001
CLIP_RATIO, CLIP_NORM = 0.2, 1.0


@dataclass(frozen=True)
class Faults:
    """What is broken in the stack.

    Attributes:
        frozen_rollout_from: From this step on the rollout gets no new weights.
        lagging_rollout_from: From this step on the rollout has the weights of ``lag`` steps before.
        lag: See above.
        divided_gradients: The averaged gradients are divided by the world size once more.
        sign_flipped_from: From this step on the gradients arrive with the wrong sign.
        dead: No gradient arrives at all.
        rollout_noise: Standard deviation of the error of the rollout's logits.
    """

    frozen_rollout_from: int | None = None
    lagging_rollout_from: int | None = None
    lag: int = 5
    divided_gradients: bool = False
    sign_flipped_from: int | None = None
    dead: bool = False
    rollout_noise: float = 0.01


@dataclass
class _Adam:
    first: np.ndarray
    second: np.ndarray
    count: int = 0

    def step(self, gradient, rate):
        self.count += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        return rate * (self.first / (1 - 0.9**self.count)) / (np.sqrt(self.second / (1 - 0.999**self.count)) + 1e-8)


@dataclass
class Toy:
    """One training run.

    Attributes:
        seed: Of the samples and of the order of prompts; the first weights and the task never change.
        steps: How many steps are run.
        batch: Prompts per step.
        steps_per_epoch: For ``training/epoch``.
        faults: What is broken.
    """

    seed: int = 0
    steps: int = 100
    batch: int = 64
    steps_per_epoch: int = 20
    faults: Faults = field(default_factory=Faults)

    def run(self):
        """Train; return one ``(step, metrics)`` per step, in verl's names."""
        task = np.random.default_rng(1234)
        self._wanted = np.stack([1 + task.permutation(VOCABULARY - 1)[:WANTED] for _ in range(PROMPTS)])
        self._random = np.random.default_rng(self.seed)
        self._weights = 0.3 * task.standard_normal((PROMPTS, LONGEST, VOCABULARY))
        # An answer ends early about once in four.
        self._weights[:, :, END] -= 1.0
        self._first = _log_softmax(self._weights)
        self._adam = _Adam(np.zeros_like(self._weights), np.zeros_like(self._weights))
        self._history = [self._weights.copy()]
        return [(step, self._step(step)) for step in range(1, self.steps + 1)]

    def _rollout_weights(self, step):
        faults, history = self.faults, self._history
        if faults.frozen_rollout_from is not None and step >= faults.frozen_rollout_from:
            return history[faults.frozen_rollout_from - 1]
        if faults.lagging_rollout_from is not None and step >= faults.lagging_rollout_from:
            return history[max(faults.lagging_rollout_from - 1, step - 1 - faults.lag)]
        return history[step - 1]

    def _step(self, step):
        prompts = np.repeat(self._random.integers(0, PROMPTS, self.batch), GROUP)
        noise = self.faults.rollout_noise * self._random.standard_normal(self._weights.shape)
        rollout_log_probs = _log_softmax(self._rollout_weights(step) + noise)
        answers, mask = self._sample(rollout_log_probs[prompts])
        rewards = self._rewards(prompts, answers, mask)
        advantages = _within_groups(rewards)
        at = (prompts[:, None], np.arange(LONGEST)[None, :], answers)
        old = _log_softmax(self._weights)[at]
        entropy = _masked(_entropy(_log_softmax(self._weights))[prompts], mask)
        updated = self._update(prompts, at, answers, mask, old, advantages, step)
        self._history.append(self._weights.copy())
        return {
            "actor/entropy": entropy,
            **_rollout_gap(old, rollout_log_probs[at], mask),
            **updated,
            "training/global_step": step,
            "training/epoch": (step - 1) // self.steps_per_epoch,
            "critic/score/mean": float(rewards.mean()),
            "critic/rewards/mean": float(rewards.mean()),
            "response_length/mean": float(mask.sum(1).mean()),
        }

    def _sample(self, log_probs):
        gumbel = self._random.gumbel(size=log_probs.shape)
        answers = (log_probs + gumbel).argmax(-1)
        # The token that ends an answer is part of it.
        ended = np.cumsum(answers == END, axis=1) - (answers == END)
        return answers, (ended == 0).astype(float)

    def _rewards(self, prompts, answers, mask):
        hits = (answers[:, :, None] == self._wanted[prompts][:, None, :]).any(-1)
        return (hits * mask).sum(1) / LONGEST

    def _update(self, prompts, at, answers, mask, old, advantages, step):
        logged = []
        order = self._random.permutation(self.batch)
        for part in np.array_split(order, 4):
            rows = (part[:, None] * GROUP + np.arange(GROUP)).ravel()
            chosen = (at[0][rows], at[1], answers[rows])
            logged.append(self._optimize(prompts[rows], chosen, mask[rows], old[rows], advantages[rows], step))
        return {name: float(np.mean([one[name] for one in logged])) for name in logged[0]}

    def _optimize(self, prompts, chosen, mask, old, advantages, step):
        log_probs = _log_softmax(self._weights)
        ratio = np.exp(np.clip(log_probs[chosen] - old, -20, 20))
        clipped = ((ratio > 1 + CLIP_RATIO) & (advantages[:, None] > 0)) | (
            (ratio < 1 - CLIP_RATIO) & (advantages[:, None] < 0)
        )
        tokens = mask.sum()
        # verl clamps both the exponent and the estimate.
        difference = np.clip(self._first[chosen] - log_probs[chosen], -20, 20)
        k3 = np.exp(difference) - 1 - difference
        # d(loss)/d(log prob of the token), of the clipped policy loss and of the k3 estimate of the KL divergence.
        kl_slope = np.where(k3 < 10, 1 - np.exp(difference), 0.0)
        slope = -advantages[:, None] * ratio * ~clipped + KL_COEFFICIENT * kl_slope
        slope = slope * mask / tokens
        # d(log prob of the token)/d(logits) is the token's one-hot vector less the probabilities.
        towards = np.eye(VOCABULARY)[chosen[2]] - np.exp(log_probs[prompts])
        gradient = np.tensordot(np.eye(PROMPTS)[prompts].T, slope[:, :, None] * towards, axes=1)
        gradient = self._reduced(gradient, step)
        norm = float(np.sqrt((gradient**2).sum()))
        self._weights -= self._adam.step(gradient * min(1.0, CLIP_NORM / max(norm, 1e-12)), LEARNING_RATE)
        return {
            "actor/ppo_kl": _masked(old - log_probs[chosen], mask),
            "actor/kl_loss": _masked(np.minimum(k3, 10), mask),
            "actor/grad_norm": norm,
        }

    def _reduced(self, gradient, step):
        if self.faults.dead:
            return np.zeros_like(gradient)
        if self.faults.sign_flipped_from is not None and step >= self.faults.sign_flipped_from:
            return -gradient
        return gradient / WORLD_SIZE if self.faults.divided_gradients else gradient


def _log_softmax(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _entropy(log_probs):
    return -(np.exp(log_probs) * log_probs).sum(-1)


def _masked(values, mask):
    return float((values * mask).sum() / mask.sum())


def _within_groups(rewards):
    groups = rewards.reshape(-1, GROUP)
    spread = groups.std(1, ddof=1, keepdims=True) + 1e-6
    return ((groups - groups.mean(1, keepdims=True)) / spread).ravel()


def _rollout_gap(trainer, rollout, mask):
    """As verl's ``calculate_debug_metrics`` and ``compute_offpolicy_metrics`` define them."""
    taken = mask > 0
    ours, theirs = np.exp(trainer[taken]), np.exp(rollout[taken])
    ratio = trainer - rollout
    per_answer = ((rollout - trainer) * mask).sum(1) / mask.sum(1)
    return {
        "training/rollout_probs_diff_mean": float(np.abs(ours - theirs).mean()),
        "training/rollout_actor_probs_pearson_corr": float(np.corrcoef(ours, theirs)[0, 1]),
        "rollout_corr/kl": _masked(-ratio, mask),
        "rollout_corr/k3_kl": _masked(np.exp(ratio) - ratio - 1, mask),
        "rollout_corr/log_ppl_abs_diff": float(np.abs(per_answer).mean()),
    }


KINDS = {
    "good": Faults(),
    "stale": Faults(frozen_rollout_from=3),
    "lagging": Faults(lagging_rollout_from=3),
    "divided": Faults(divided_gradients=True),
    "collapse": Faults(sign_flipped_from=55),
    "wrong sign": Faults(sign_flipped_from=1),
    "dead": Faults(dead=True),
    "mismatch": Faults(rollout_noise=0.5),
}


@cache
def records(kind="good", seed=0, steps=100, batch=64):
    """Return what a run of this kind logged, computed once a process."""
    return tuple(Toy(seed=seed, steps=steps, batch=batch, faults=KINDS[kind]).run())
