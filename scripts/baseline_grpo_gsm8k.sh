#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The verl-hw authors
# SPDX-License-Identifier: Apache-2.0
#
# The field's acceptance baseline: GRPO of Qwen3-0.6B on GSM8K with verl's unmodified trainer, FSDP and vLLM.
#
#   DATA_DIR=<gsm8k as parquet> MODEL_DIR=<Qwen3-0.6B> scripts/baseline_grpo_gsm8k.sh [--dry-run] [verl options...]
#
# DATA_DIR holds train.parquet and test.parquet as verl's examples/data_preprocess/gsm8k.py writes them; MODEL_DIR is a
# Hugging Face model folder. Everything else has a default and is changed by a variable of the list below; further
# options of verl's trainer (key=value) go on the command line and win. What a chip needs comes from its vendor wheel.
# Exit status: that of training; 2 when it cannot start as asked.
set -euo pipefail

usage() {
    sed -n '/^# The field/,/^# Exit status/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    printf '\nVariables and their defaults:\n'
    sed -n 's/^: "\${\([A-Z_]*\):=\(.*\)}"\( *# \(.*\)\)\{0,1\}$/  \1=\2   \4/p' "${BASH_SOURCE[0]}"
}

fail() {
    printf 'baseline: %s\n' "$*" >&2
    exit 2
}

dry_run=false
overrides=()
for argument in "$@"; do
    case "$argument" in
        --dry-run) dry_run=true ;;
        -h | --help) usage && exit 0 ;;
        --) ;;
        *=* | '~'*) overrides+=("$argument") ;;
        *) fail "unknown argument '$argument': wanted --dry-run, --help, or an option of verl's trainer as key=value" ;;
    esac
done

: "${VENDOR:=}"                        # platform key; empty: what is found; none: verl's own platform
: "${PYTHON:=python3}"                 # the interpreter that has verl
: "${OUTPUT_DIR:=outputs/baseline}"    # log, metrics, checkpoints; a second run there resumes
: "${DEVICES:=8}"                      # per node
: "${NODES:=1}"
: "${EPOCHS:=15}"
: "${TRAIN_BATCH:=64}"                 # prompts a step
: "${MINI_BATCH:=16}"                  # prompts an update
: "${PROMPT_LENGTH:=1024}"             # tokens
: "${RESPONSE_LENGTH:=1024}"           # tokens
: "${LEARNING_RATE:=1e-6}"
: "${KL_LOSS_COEF:=0.001}"
: "${KL_LOSS_TYPE:=low_var_kl}"
: "${ROLLOUT:=vllm}"
: "${ROLLOUT_N:=5}"                    # answers a prompt
: "${TENSOR_PARALLEL:=1}"              # of the rollout
: "${MEMORY_UTILIZATION:=0.3}"         # share of the device's memory for the rollout
: "${STRATEGY:=fsdp}"                  # fsdp or fsdp2
: "${PARAM_OFFLOAD:=True}"
: "${OPTIMIZER_OFFLOAD:=True}"
: "${MAX_TOKENS:=24576}"               # per device and micro batch, with dynamic batches
: "${SAVE_EVERY:=20}"                  # steps
: "${TEST_EVERY:=5}"                   # steps
: "${LOGGERS:=[console,file]}"         # verl's trainer.logger; console is what verl-hw accept reads
: "${PROJECT:=verl-hw-baseline}"
: "${EXPERIMENT:=grpo-qwen3-0.6b-gsm8k}"

[[ -n "${DATA_DIR:-}" ]] || fail "DATA_DIR is not set: the folder with GSM8K's train.parquet and test.parquet"
[[ -n "${MODEL_DIR:-}" ]] || fail "MODEL_DIR is not set: the folder with the model Qwen3-0.6B"
missing=()
for file in "$DATA_DIR/train.parquet" "$DATA_DIR/test.parquet" "$MODEL_DIR/config.json"; do
    [[ -r "$file" ]] || missing+=("'$file'")
done
((${#missing[@]} == 0)) || fail "${missing[*]} is missing or cannot be read: check DATA_DIR and MODEL_DIR (also for --dry-run)"
command -v "$PYTHON" >/dev/null || fail "no interpreter '$PYTHON': set PYTHON to the one that has verl"
"$PYTHON" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("verl_hw_core") and u.find_spec("verl")))' ||
    fail "'$PYTHON' has no verl or no verl-hw-core: activate the environment that has them, or set PYTHON"

# Ray's workers may run elsewhere: they get absolute paths. The log's folder is made before anything is resolved.
$dry_run || mkdir -p "$OUTPUT_DIR" || fail "OUTPUT_DIR '$OUTPUT_DIR' cannot be made"
absolute() {
    case "$1" in
        /*) printf '%s' "$1" ;;
        *) printf '%s/%s' "$PWD" "$1" ;;
    esac
}
DATA_DIR="$(absolute "$DATA_DIR")" MODEL_DIR="$(absolute "$MODEL_DIR")" OUTPUT_DIR="$(absolute "$OUTPUT_DIR")"

# A string of hydra's grammar: blanks, commas and the like in a path stay what they are.
quoted() {
    local text="${1//\'/\\\'}"
    printf "'%s'" "$text"
}

settings="$("$PYTHON" -m verl_hw_tools.acceptance.baseline --vendor "$VENDOR")" || exit 2
# Where the user has not told verl's file logger where to write.
environment=()
[[ -n "${VERL_FILE_LOGGER_PATH:-}${VERL_FILE_LOGGER_ROOT:-}" ]] ||
    environment+=("VERL_FILE_LOGGER_PATH=$OUTPUT_DIR/metrics.jsonl")
vendor_options=()
while IFS=$'\t' read -r kind setting; do
    case "$kind" in
        vendor) vendor="$setting" ;;
        option) vendor_options+=("$setting") ;;
        env)
            # What the user exported wins.
            name="${setting%%=*}"
            [[ -n "${!name+set}" ]] || environment+=("$setting")
            ;;
    esac
done <<<"$settings"

actor=actor_rollout_ref.actor rollout=actor_rollout_ref.rollout ref=actor_rollout_ref.ref
command=(
    "$PYTHON" -m verl.trainer.main_ppo
    algorithm.adv_estimator=grpo
    algorithm.use_kl_in_reward=False
    data.train_files="$(quoted "$DATA_DIR/train.parquet")"
    data.val_files="$(quoted "$DATA_DIR/test.parquet")"
    data.train_batch_size="$TRAIN_BATCH"
    data.max_prompt_length="$PROMPT_LENGTH"
    data.max_response_length="$RESPONSE_LENGTH"
    data.filter_overlong_prompts=True
    data.truncation=error
    actor_rollout_ref.model.path="$(quoted "$MODEL_DIR")"
    actor_rollout_ref.model.use_remove_padding=True
    actor_rollout_ref.model.enable_gradient_checkpointing=True
    "$actor.strategy=$STRATEGY"
    "$actor.optim.lr=$LEARNING_RATE"
    "$actor.ppo_mini_batch_size=$MINI_BATCH"
    "$actor.use_dynamic_bsz=True"
    "$actor.ppo_max_token_len_per_gpu=$MAX_TOKENS"
    "$actor.use_kl_loss=True"
    "$actor.kl_loss_coef=$KL_LOSS_COEF"
    "$actor.kl_loss_type=$KL_LOSS_TYPE"
    "$actor.entropy_coeff=0"
    "$actor.fsdp_config.param_offload=$PARAM_OFFLOAD"
    "$actor.fsdp_config.optimizer_offload=$OPTIMIZER_OFFLOAD"
    "$ref.log_prob_use_dynamic_bsz=True"
    "$ref.log_prob_max_token_len_per_gpu=$MAX_TOKENS"
    "$ref.fsdp_config.param_offload=$PARAM_OFFLOAD"
    "$rollout.name=$ROLLOUT"
    "$rollout.n=$ROLLOUT_N"
    "$rollout.tensor_model_parallel_size=$TENSOR_PARALLEL"
    "$rollout.gpu_memory_utilization=$MEMORY_UTILIZATION"
    "$rollout.log_prob_use_dynamic_bsz=True"
    "$rollout.log_prob_max_token_len_per_gpu=$MAX_TOKENS"
    # Without it the gap between rollout and trainer is not logged, and stale weights can go unseen.
    "$rollout.calculate_log_probs=True"
    trainer.nnodes="$NODES"
    trainer.n_gpus_per_node="$DEVICES"
    trainer.total_epochs="$EPOCHS"
    trainer.save_freq="$SAVE_EVERY"
    trainer.test_freq="$TEST_EVERY"
    trainer.logger="$LOGGERS"
    trainer.project_name="$(quoted "$PROJECT")"
    trainer.experiment_name="$(quoted "$EXPERIMENT")"
    trainer.default_local_dir="$(quoted "$OUTPUT_DIR/checkpoints")"
    hydra.run.dir="$(quoted "$OUTPUT_DIR")"
    "${vendor_options[@]}"
    "${overrides[@]}"
)

if $dry_run; then
    printf '%q ' env "${environment[@]}" "${command[@]}"
    printf '\n'
    exit 0
fi

log="$OUTPUT_DIR/train.log"
# Not after days of training.
{ : >>"$log"; } 2>/dev/null || fail "the log '$log' cannot be written: check OUTPUT_DIR"
printf 'baseline: %s; log: %s\n' "${vendor:-}" "$log"
# tee's status must not hide that of training.
set +e
env "${environment[@]}" "${command[@]}" 2>&1 | tee -a "$log"
status=("${PIPESTATUS[@]}")
set -e
printf 'baseline: training ended with exit code %s\n' "${status[0]}" | tee -a "$log"
((status[0] == 0)) || exit "${status[0]}"
((status[1] == 0)) || fail "the log '$log' could not be written"
printf 'baseline: now judge it:  verl-hw accept %q --reference <log of an accepted run>\n' "$log"
