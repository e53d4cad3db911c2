"""A gpt on real text, from the same weights on the same batches, by tapedeck and by PyTorch: every parameter's gradient
at step 1 must agree within 1e-4 of its largest entry, and the losses of 50 steps of AdamW (warm-up, cosine, clipping,
weight decay) within 1e-4 relative. Exits with 1 when they do not.
usage: gpt_curve.py TAPEDECK TEXT_FILE"""
import json
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
from torch.nn import functional as F

from torch_gpt import Gpt, optimizer, our_name, rate

STEPS, BATCH, SEED, CONTEXT, LAYERS, HEADS, WIDTH = 50, 12, 5, 64, 4, 4, 128
LR, WARMUP, DECAY, CLIP = 1e-3, 10, 0.1, 1.0
ALLOWED = 1e-4


def tapedeck(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def run_of_tapedeck(program, text, folder, *options):
    tapedeck(program, "train", "--model", "gpt", "--data", f"text:{text}", "--context", CONTEXT, "--layers", LAYERS,
             "--heads", HEADS, "--width", WIDTH, "--batch", BATCH, "--seed", SEED, "--eval-every", 10**9, "--log-every", 1,
             "--quiet", "--out", folder, *options)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    losses = [line["train_loss"] for line in lines if "train_loss" in line]
    return safetensors.torch.load_file(folder / "model.safetensors"), losses


def main():
    program, text = sys.argv[1], sys.argv[2]
    characters = pathlib.Path(text).read_text(encoding="utf-8")
    vocabulary = sorted(set(characters))
    ids = torch.tensor([vocabulary.index(c) for c in characters])
    order = json.loads(tapedeck(program, "data", "info", f"text:{text}", "--context", CONTEXT, "--seed", SEED, "--order", 0, "--json"))

    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        plain = ["--optimizer", "sgd", "--schedule", "constant", "--warmup", 0, "--steps", 1]
        start, _ = run_of_tapedeck(program, text, scratch / "start", *plain, "--lr", "1e-40")
        # A plain step so long that what was there before is lost beside it: the weights are the gradient, times -lr.
        stride = 2.0**40
        moved, _ = run_of_tapedeck(program, text, scratch / "moved", *plain, "--lr", stride)
        _, ours = run_of_tapedeck(program, text, scratch / "run", "--steps", STEPS, "--lr", LR, "--warmup", WARMUP,
                                  "--weight-decay", DECAY, "--clip", CLIP)

    model = Gpt(len(vocabulary), CONTEXT, LAYERS, HEADS, WIDTH)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(start[our_name(name)])
    descent = optimizer(model, LR, DECAY)
    theirs, failed = [], False
    for step in range(STEPS):
        windows = torch.stack([ids[row : row + CONTEXT + 1] for row in order[step * BATCH : (step + 1) * BATCH]])
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        theirs.append(loss.item())
        descent.zero_grad()
        loss.backward()
        if step == 0:
            worst = {}
            for name, parameter in model.named_parameters():
                ours_here = (start[our_name(name)].double() - moved[our_name(name)].double()) / stride
                largest = parameter.grad.abs().max().item()
                worst[our_name(name)] = (ours_here - parameter.grad).abs().max().item() / largest
            name, error = max(worst.items(), key=lambda item: item[1])
            print(f"gradients at step 1: {len(worst)} parameters, largest difference {error:.1e} of its largest entry ({name})")
            failed |= not error <= ALLOWED
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for group in descent.param_groups:
            group["lr"] = rate(step, LR, WARMUP, STEPS)
        descent.step()
    differences = [abs(a - b) / b for a, b in zip(ours, theirs)]
    print(f"losses of {len(differences)} steps: from {ours[0]:.4f} to {ours[-1]:.4f} (PyTorch {theirs[-1]:.4f}), largest relative difference {max(differences):.1e}")
    failed |= len(ours) != STEPS or not max(differences) <= ALLOWED
    print("they agree within 1e-4" if not failed else "they do NOT agree within 1e-4")
    sys.exit(failed)


if __name__ == "__main__":
    main()
