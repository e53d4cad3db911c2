"""The training step of an MLP 784-512-512-10 with Adam: tapedeck and PyTorch take turns, round by round, on the same
number of threads; prints the ratio of their medians with a 95 % interval (Student's t on the paired log ratios).
PyTorch runs twice: as people write it (Adam's defaults) and with Adam(fused=True), its fastest eager form here.
usage: bench_step.py TAPEDECK [--rounds 12] [--batches 32,128,512,2048] [--json FILE]"""
import argparse
import json
import math
import statistics
import subprocess
import time

import torch

from torch_mlp import mlp, optimizer

T95 = {5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201, 14: 2.145, 19: 2.093, 29: 2.045}  # 97.5 % points of Student's t
FORMS = {"default": {}, "fused": {"fused": True}}


def steps_per_round(batch):
    return max(10, 20000 // batch)


class TorchStep:
    def __init__(self, batch, options):
        self.model = mlp([784, 512, 512, 10])
        self.descent = optimizer("adam", self.model.parameters(), 1e-3, **options)
        self.x = torch.rand(batch, 784)
        self.labels = torch.arange(batch) % 10
        self.batch = batch

    def step(self):
        self.descent.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(self.model(self.x), self.labels).backward()
        self.descent.step()

    def median_ms(self):
        for _ in range(5):
            self.step()
        times = []
        for _ in range(steps_per_round(self.batch)):
            begin = time.perf_counter()
            self.step()
            times.append((time.perf_counter() - begin) * 1e3)
        return statistics.median(times)


def ours_ms(program, batch):
    command = [program, "bench", "step", "--batches", str(batch), "--rounds", "1", "--steps", str(steps_per_round(batch))]
    answer = subprocess.run([*command, "--threads", str(torch.get_num_threads()), "--json"], check=True,
                            capture_output=True, text=True).stdout
    row = json.loads(answer)["rows"][0]
    return row["median_ms"], row["share_of_peak"]


def ratio_interval(ours, theirs):
    logs = [math.log(a / b) for a, b in zip(ours, theirs)]
    n = len(logs)
    half = T95[max(k for k in T95 if k <= n - 1)] * statistics.stdev(logs) / math.sqrt(n)
    middle = statistics.mean(logs)
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tapedeck")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--batches", default="32,128,512,2048")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.rounds < 6:
        parser.error("an interval needs at least 6 rounds")
    rows = []
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {arguments.rounds} rounds of paired medians")
    print(f"{'batch':>6} {'ours ms':>9} {'of peak':>8}   {'PyTorch':>8} {'ms':>9}   ours/PyTorch [95 %]")
    for batch in map(int, arguments.batches.split(",")):
        theirs = {form: TorchStep(batch, options) for form, options in FORMS.items()}
        ours, shares, times = [], [], {form: [] for form in FORMS}
        for _ in range(arguments.rounds):
            milliseconds, share = ours_ms(arguments.tapedeck, batch)
            ours.append(milliseconds)
            shares.append(share)
            for form, step in theirs.items():
                times[form].append(step.median_ms())
        for form in FORMS:
            ratio, low, high = ratio_interval(ours, times[form])
            rows.append({"batch": batch, "peer": form, "n": len(ours), "ours_ms": statistics.median(ours),
                         "peer_ms": statistics.median(times[form]), "share_of_peak": statistics.median(shares),
                         "ratio": ratio, "low": low, "high": high})
            print(f"{batch:>6} {statistics.median(ours):>9.3f} {100 * statistics.median(shares):>7.0f}%   {form:>8} "
                  f"{statistics.median(times[form]):>9.3f}   {ratio:.3f} [{low:.3f}, {high:.3f}]", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"torch": torch.__version__, "threads": torch.get_num_threads(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
