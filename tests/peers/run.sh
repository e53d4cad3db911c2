#!/usr/bin/env bash
# Compares tapedeck with PyTorch on this machine: the same loss curves and gradients, weights that both read, and the time
# of a training step, interleaved; an mlp and a gpt, the calls that a profile counts, and whether what the gpt writes is
# words.
# PyTorch (some GB) goes into its own virtual environment, once: $TAPEDECK_PEERS, default ~/.cache/tapedeck/peers.
# usage: tests/peers/run.sh [MNIST_FOLDER [TEXT_FILE]]      from the project's root, with build/tapedeck built
set -euo pipefail
cd "$(dirname "$0")/../.."
environment=${TAPEDECK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/tapedeck/peers}
mnist=${1:-../shared/data/mnist}
text=${2:-../shared/data/shakespeare/input.txt}
runs=$(mktemp -d)
trap 'rm -r "$runs"' EXIT
if ! "$environment/bin/python" -c 'import torch, numpy, safetensors' 2>/dev/null; then
  echo "installing PyTorch into $environment" >&2
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet 'torch>=2.13' numpy safetensors
fi
if [ -d "$mnist" ]; then
  "$environment/bin/python" tests/peers/loss_curve.py build/tapedeck "$mnist"
else
  echo "skipped: the loss curve needs MNIST and $mnist is not there"
fi
"$environment/bin/python" tests/peers/saved_weights.py build/tapedeck
"$environment/bin/python" tests/peers/profile_counts.py build/tapedeck
if [ -f "$text" ]; then
  "$environment/bin/python" tests/peers/gpt_curve.py build/tapedeck "$text"
  "$environment/bin/python" tests/peers/bench_gpt.py build/tapedeck "$text" --full --out "$runs/gpt"
  "$environment/bin/python" tests/peers/words.py build/tapedeck "$runs/gpt" "$text"
else
  echo "skipped: the gpt needs a text and $text is not there"
fi
"$environment/bin/python" tests/peers/bench_step.py build/tapedeck
