"""nanoGPT's laptop setting (4 layers, 4 heads, width 128, context 64, batch 12, AdamW) trained by tapedeck and by PyTorch
in turns, on the same number of threads: a round is 100 steps of each, batches and all. Prints the ratio of their median
steps with a 95 % interval (Student's t on the paired log ratios). PyTorch runs twice: as people write it, and with
AdamW(fused=True), its fastest eager form here. Rounds read the first 100,000 characters alone, because each of ours ends
in an evaluation, which nobody times. With --full both train 2,000 steps on the whole text and print their validation losses;
--out keeps our run.
usage: bench_gpt.py TAPEDECK TEXT_FILE [--rounds 12] [--full [--out RUN]] [--json FILE]"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
from torch.nn import functional as F

from bench_step import ratio_interval
from torch_gpt import Gpt, optimizer, rate

CONTEXT, LAYERS, HEADS, WIDTH, BATCH = 64, 4, 4, 128, 12
LR, WARMUP, DECAY, CLIP, STEPS, ROUND = 1e-3, 100, 0.1, 1.0, 2000, 100
PART = 100_000  # characters


class Torch:
    def __init__(self, text, **options):
        vocabulary = {c: i for i, c in enumerate(sorted(set(text)))}
        ids = torch.tensor([vocabulary[c] for c in text])
        cut = len(ids) * 9 // 10
        self.train, self.validation = ids[:cut], ids[cut:]
        self.model = Gpt(len(vocabulary), CONTEXT, LAYERS, HEADS, WIDTH)
        self.descent = optimizer(self.model, LR, DECAY, **options)
        self.done = 0

    def loss(self, windows):
        return F.cross_entropy(self.model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())

    def step(self):
        starts = torch.randint(len(self.train) - CONTEXT, (BATCH,))
        loss = self.loss(torch.stack([self.train[i : i + CONTEXT + 1] for i in starts]))
        self.descent.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        for group in self.descent.param_groups:
            group["lr"] = rate(self.done, LR, WARMUP, STEPS)
        self.descent.step()
        self.done += 1

    def median_ms(self):
        times = []
        for _ in range(ROUND):
            begin = time.perf_counter()
            self.step()
            times.append((time.perf_counter() - begin) * 1e3)
        return statistics.median(times)

    @torch.no_grad()
    def validation_loss(self):
        starts = range(0, len(self.validation) - CONTEXT, CONTEXT)
        windows = torch.stack([self.validation[i : i + CONTEXT + 1] for i in starts])
        return sum(self.loss(part).item() * len(part) for part in windows.split(64)) / len(windows)


def ours(program, text, steps, *options, out=None):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "train", "--model", "gpt", "--data", f"text:{text}", "--context", CONTEXT, "--layers", LAYERS,
                   "--heads", HEADS, "--width", WIDTH, "--batch", BATCH, "--lr", LR, "--warmup", WARMUP, "--weight-decay",
                   DECAY, "--clip", CLIP, "--steps", steps, "--threads", torch.get_num_threads(), "--quiet", "--json",
                   "--out", out or f"{folder}/run", *options]
        return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)


def rounds(program, text, count):
    """A row for each peer: the ratio of our median step to its own."""
    with tempfile.TemporaryDirectory() as folder:
        part = pathlib.Path(folder, "part.txt")
        part.write_text(text[:PART], encoding="utf-8")
        peers = {"default": Torch(text[:PART]), "fused": Torch(text[:PART], fused=True)}
        mine, theirs, rows = [], {name: [] for name in peers}, []
        for peer in peers.values():
            peer.median_ms()  # warms up
        for _ in range(count):
            mine.append(ours(program, part, ROUND, "--eval-every", 10**9)["step_ms"]["median"])
            for name, peer in peers.items():
                theirs[name].append(peer.median_ms())
    for name in peers:
        ratio, low, high = ratio_interval(mine, theirs[name])
        rows.append({"peer": name, "n": len(mine), "ours_ms": statistics.median(mine), "peer_ms": statistics.median(theirs[name]),
                     "ratio": ratio, "low": low, "high": high})
        print(f"step: ours {statistics.median(mine):.2f} ms, PyTorch {name} {statistics.median(theirs[name]):.2f} ms, ours/PyTorch {ratio:.3f} [{low:.3f}, {high:.3f}]")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tapedeck")
    parser.add_argument("text")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.rounds < 6:
        parser.error("an interval needs at least 6 rounds")
    text = pathlib.Path(arguments.text).read_text(encoding="utf-8")
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {arguments.rounds} rounds of paired medians of {ROUND} steps")
    rows = rounds(arguments.tapedeck, text, arguments.rounds)
    answer = {"torch": torch.__version__, "threads": torch.get_num_threads(), "rows": rows}
    if arguments.full:
        peer = Torch(text, fused=True)
        while peer.done < STEPS:
            peer.step()
        summary = ours(arguments.tapedeck, arguments.text, STEPS, out=arguments.out)
        answer["validation_loss"] = {"ours": summary["final"]["validation_loss"], "peer": peer.validation_loss()}
        print("validation loss after {} steps: ours {ours:.4f}, PyTorch {peer:.4f} (n = 1 seed each)".format(STEPS, **answer["validation_loss"]))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(answer, indent=1))


if __name__ == "__main__":
    main()
