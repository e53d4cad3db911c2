#!/usr/bin/env bash
# Compares tapedeck with PyTorch on this machine: the same loss curve, weights that both read, and the time of a training
# step, interleaved.
# PyTorch (some GB) goes into its own virtual environment, once: $TAPEDECK_PEERS, default ~/.cache/tapedeck/peers.
# usage: tests/peers/run.sh [MNIST_FOLDER]      from the project's root, with build/tapedeck built
set -euo pipefail
cd "$(dirname "$0")/../.."
environment=${TAPEDECK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/tapedeck/peers}
mnist=${1:-../shared/data/mnist}
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
"$environment/bin/python" tests/peers/bench_step.py build/tapedeck
