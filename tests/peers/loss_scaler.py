"""Drives PyTorch's GradScaler through 10,000 steps, some of which overflow, and prints what it does whenever its scale
changes or a step is skipped, as rows for tests/test_loss_scaler.cpp, which goes through the same events. With the rows'
file, compares instead: exit 0 when all are equal.
usage: loss_scaler.py [tests/peers/loss_scaler_rows.inc]"""
import pathlib
import sys

import torch


def overflows(event):
    mixed = event * 2654435761 % 2**32
    return mixed < 0xFFFFFFFF // (4 if event < 100 else 9000)


def rows():
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler = torch.amp.GradScaler("cpu")  # 65536, growth 2 every 2,000 steps, backoff 0.5: its defaults
    skipped, before = 0, None
    for event in range(10000):
        scaler.scale(weight.sum()).backward()
        if overflows(event):
            weight.grad.fill_(float("inf"))
            skipped += 1
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        state = scaler.state_dict()
        if before != (state["scale"], skipped) or event == 9999:
            yield f"{{{event}, {state['scale']}f, {state['_growth_tracker']}, {skipped}}},"
        before = (state["scale"], skipped)


found = list(rows())
if len(sys.argv) < 2:
    print("\n".join(found))
    sys.exit()
stored = pathlib.Path(sys.argv[1]).read_text().split("\n")
stored = [line.strip() for line in stored if line.strip().startswith("{")]
different = [(a, b) for a, b in zip(found, stored) if a != b]
print(f"PyTorch {torch.__version__}: {len(found)} rows, stored {len(stored)}, {len(different)} different")
sys.exit(bool(different) or len(found) != len(stored))
