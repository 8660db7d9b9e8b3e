# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
"""Names under which verl 0.9 logs what is judged here, read in its trainer, losses and rollout correction."""

REWARD = "critic/rewards/mean"
EPOCH = "training/epoch"
GRAD_NORM = "actor/grad_norm"
KL_LOSS = "actor/kl_loss"
PPO_KL = "actor/ppo_kl"
ENTROPY = "actor/entropy"
RESPONSE_LENGTH = "response_length/mean"
# Rollout against trainer: difference of probabilities, their correlation, KL divergence by the k3 estimate.
PROBS_DIFF = "training/rollout_probs_diff_mean"
PROBS_CORRELATION = "training/rollout_actor_probs_pearson_corr"
ROLLOUT_KL = "rollout_corr/k3_kl"

JUDGED = (
    *(REWARD, GRAD_NORM, KL_LOSS, PPO_KL, ENTROPY, RESPONSE_LENGTH),
    *(PROBS_DIFF, PROBS_CORRELATION, ROLLOUT_KL),
)
KNOWN = (*JUDGED, EPOCH)
