"""Whether tapedeck's profile and PyTorch's count the same work: the calls of `tapedeck profile` beside those of one
torch.profiler trace of the same model and as many steps. TOGETHER says which ops are which; what one of them does
alone stands in OURS_ALONE and THEIRS_ALONE with the reason, and an op that no table knows is an error. Then each count
that was compared is altered by one, to see that the comparison notices. Exits with 1 when counts differ, when an op is
unknown, and when an alteration goes unnoticed.
usage: profile_counts.py TAPEDECK"""
import collections
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # no lines about GPUs that are not there
import safetensors
import torch
from torch.nn import functional as F

import torch_gpt
import torch_mlp

BATCH, WINDOW = 16, "skip=0,wait=1,warmup=1,active=3,repeat=1"
BIASED = [f"range {name}" for name in ("mlp.hidden[0-9]", "mlp.out", *(f"gpt.block[0-9].{part}" for part in ("qkv", "mix", "grow", "shrink")))]
ACTIVE = ["range mlp.hidden[0-9]", "range gpt.block[0-9].grow"]

# (ours, theirs, of each, why): the sum of ours is the sum of theirs; where an op of ours stands for several of theirs it
# is multiplied, and "parameter" multiplies by the tensors of the model as we save it. Ours: "op way" or "range NAME".
# Theirs: "phase op"; each agrees by itself, unless a "+" joins them.
TOGETHER = [
    (["gemm forward"], ["forward aten::addmm + forward aten::mm"], "", "a product each"),
    (["gemm backward"], ["backward aten::mm"], "", "dW of each layer, and dx of each but an mlp's first, whose x wants none"),
    (["linear forward"], ["forward aten::linear"], "", "the call around the product"),
    (BIASED, ["forward aten::addmm"], "", "a product with a bias, by our layers' ranges; a gpt's head has no bias and is no layer"),
    (["linear backward"], ["backward AddmmBackward0 + backward MmBackward0"], "", "a node each"),
    ([*BIASED, "embedding backward"], ["backward aten::sum"], "",
     "db, in our linear backward; and the positions' gradient, summed over the batch in our embedding backward"),
    (ACTIVE, ["forward aten::relu + forward aten::gelu", "backward aten::threshold_backward + backward aten::gelu_backward"], "",
     "the activation: ours in linear's pass, forward and backward"),
    (["dropout forward"], ["forward aten::dropout", "forward aten::bernoulli_"], "", "theirs draws, divides and multiplies"),
    (["dropout backward"], ["backward MulBackward0"], "", "ours draws the mask again, theirs keeps it"),
    (["cross_entropy forward"],
     ["forward aten::cross_entropy_loss", "forward aten::_log_softmax", "forward aten::nll_loss_forward"], "", "ours is one op"),
    (["cross_entropy backward"], ["backward aten::nll_loss_backward", "backward aten::_log_softmax_backward_data"], "", "ours is one op"),
    (["layer_norm forward", "add_layer_norm forward"], ["forward aten::native_layer_norm"], "", "add_layer_norm: with the sum before it"),
    (["layer_norm backward", "add_layer_norm backward"], ["backward aten::native_layer_norm_backward"], "", "as forward"),
    (["add forward", "embedding forward"], ["forward aten::add"], "",
     "a block's two sums, ours in add_layer_norm's pass; tokens + positions, ours in embedding's"),
    (["add backward", "embedding backward"], ["backward AddBackward0"], "", "as forward; neither moves anything"),
    ({"embedding forward": 2}, ["forward aten::embedding"], "", "ours looks up tokens and positions in one pass"),
    ({"embedding backward": 2}, ["backward aten::embedding_dense_backward"], "", "as forward"),
    (["attention forward"], ["forward aten::scaled_dot_product_attention"], "", "fused in both, causal"),
    (["attention backward"], ["backward aten::_scaled_dot_product_flash_attention_for_cpu_backward"], "", "fused in both"),
    (["reshape forward"], ["forward aten::flatten"], "", "logits and answers as rows; moves nothing"),
    (["sgd", "momentum", "adam", "adamw"], ["backward torch::autograd::AccumulateGrad"], "parameter",
     "a gradient each: our ops write it where one update takes all of them"),
    (["adam", "adamw"], ["optimizer aten::lerp_", "optimizer aten::addcmul_", "optimizer aten::sqrt", "optimizer aten::addcdiv_"],
     "parameter", "ours is one pass over all parameters"),
    ({"sgd": 1, "momentum": 2, "adam": 2, "adamw": 2}, ["optimizer aten::add_"], "parameter",
     "ours is one pass; a moment or a step count and eps are theirs to add"),
]
OURS_ALONE = {
    "data": "the batch is there beforehand in PyTorch's trace",
    "reshape backward": "a view: theirs has one behind every product as well",
}
UNCLIPPED = "gradient norm", "clip aten::linalg_vector_norm"  # ours always, since a gradient not finite ends the run
VIEWS = "as_strided detach expand narrow reshape resolve_conj select slice split t transpose unsqueeze view _unsafe_view".split()
MEMORY = "empty empty_like empty_strided fill_ ones_like resize_ zero_ zeros".split()
THEIRS_ALONE = {  # pattern -> why
    **{f"* aten::{name}": "a view: ours is part of the op that reads it" for name in VIEWS},
    "* detach": "a view: ours is part of the op that reads it",
    **{f"* aten::{name}": "fresh memory: ours is in the op, which writes it whole" for name in MEMORY},
    "backward autograd::engine::evaluate_function: *": "around a node",
    "backward [A-Z]*Backward0": "a node: what it does is counted",
    "forward aten::log_softmax": "around _log_softmax",
    "forward aten::nll_loss*": "around nll_loss_forward",
    "forward aten::layer_norm": "around native_layer_norm",
    "* aten::matmul": "around mm",
    "forward aten::clamp_min": "in relu",
    "forward aten::div_": "in dropout",
    "* aten::mul": "in dropout, or one number of the clipping",
    "forward aten::index_select": "in embedding",
    "backward aten::embedding_backward": "around embedding_dense_backward",
    "forward aten::_scaled_dot_product_flash_attention_for_cpu": "in scaled_dot_product_attention",
    "forward aten::arange": "the positions' numbers: our embedding counts for itself",
    "* aten::copy_": "a copy: between layouts ours reads the heads where they lie; else single numbers",
    "* aten::clone": "a copy: between layouts ours reads the heads where they lie",
    "* aten::contiguous": "a copy: between layouts ours reads the heads where they lie",
    "backward aten::cat": "gradients of q, k and v side by side: our attention writes them so",
    "* aten::to": "conversions of types",
    "* aten::_to_copy": "conversions of types",
    "backward aten::add": "a second gradient of one tensor: ours is added where it is computed",
    "backward aten::add_": "a second gradient of one tensor: ours is added where it is computed",
    "optimizer aten::*": "single passes and numbers of an update: ours is one pass",
    "optimizer Optimizer.*": "around an update",
    "clip aten::*": "the norm of norms, and scaling: ours is in the update's pass",
}


def parts(term):
    return term.split(" + ")


def compare(ours, theirs, parameters, clipped):
    """Lines of what agrees with how many counts each, what is wrong, and the names that were compared."""
    lines, wrong, known = [], [], set()
    table = TOGETHER + ([([UNCLIPPED[0]], [UNCLIPPED[1]], "parameter", "ours is one pass; but for the norm of norms")] if clipped else [])
    for mine, list_of_yours, each, why in table:
        factors = mine if isinstance(mine, dict) else dict.fromkeys(mine, 1)
        met = {pattern: sum(n for name, n in ours.items() if fnmatch.fnmatchcase(name, pattern)) for pattern in factors}
        known |= {name for name in ours if any(fnmatch.fnmatchcase(name, pattern) for pattern in factors)}
        n = sum(calls * factors[pattern] for pattern, calls in met.items()) * (parameters if each else 1)
        left = " + ".join(f"{calls}{f' x {factors[pattern]}' if factors[pattern] > 1 else ''} {pattern}" for pattern, calls in met.items() if calls)
        left = (left or f"0 {' + '.join(factors)}") + (f", x {parameters} parameters" if each else "")
        agree = []
        for yours in list_of_yours:
            m = sum(theirs.get(part, 0) for part in parts(yours))
            m -= ours.get(UNCLIPPED[0], 0) if yours == UNCLIPPED[1] else 0  # one more a step, of the others' norms
            known |= set(parts(yours))
            if n == m == 0:
                continue  # not in this model
            right = f"{m} {' + '.join(part for part in parts(yours) if theirs.get(part)) or yours}"
            if n == m:
                agree.append(right)
            else:
                wrong.append(f"ours: {left}, makes {n}; PyTorch: {right}   ({why})")
        if agree:
            lines.append((len(agree), f"{left} = {', '.join(agree)}   ({why})"))
    for name in ours:
        if name not in known and not name.startswith("range ") and name not in OURS_ALONE and (clipped or name != UNCLIPPED[0]):
            wrong.append(f"no table of this script knows our {name}: {ours[name]}")
    for name in theirs:
        if name not in known and not any(fnmatch.fnmatchcase(name, pattern) for pattern in THEIRS_ALONE):
            wrong.append(f"no table of this script knows PyTorch's {name}: {theirs[name]}")
    return lines, wrong, known


def alone(ours, theirs, known):
    reasons = {**OURS_ALONE, UNCLIPPED[0]: "measured unclipped as well: a step whose gradient is not finite is not taken"}
    lines = [f"ours alone: {ours[name]} {name}: {reasons[name]}" for name in ours if name not in known and name in reasons]
    by_reason = collections.defaultdict(collections.Counter)
    for name, count in theirs.items():
        if name not in known:
            why = next(why for pattern, why in THEIRS_ALONE.items() if fnmatch.fnmatchcase(name, pattern))
            by_reason[why][name.split(" ", 1)[1]] += count
    return lines + [f"PyTorch alone: {', '.join(f'{n} {name}' for name, n in names.items())}: {why}" for why, names in by_reason.items()]


def unnoticed(ours, theirs, parameters, clipped, known):
    """Each count that is compared, and an op of a new name, one more: those that the comparison does not notice."""
    altered = [({**ours, name: ours[name] + 1}, theirs, name) for name in ours if name in known]
    altered += [(ours, {**theirs, name: theirs[name] + 1}, name) for name in theirs if name in known]
    altered += [({**ours, "new forward": 1}, theirs, "new forward"), (ours, {**theirs, "forward aten::new": 1}, "forward aten::new")]
    return len(altered), [name for mine, yours, name in altered if not compare(mine, yours, parameters, clipped)[1]]


def counts_of_tapedeck(program, options):
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "profile", "--window", WINDOW, "--batch", str(BATCH), "--quiet", "--json", "--out", f"{folder}/run", *options]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command[1:])}: exit {result.returncode}: {result.stderr.strip()}")
        weights = next(pathlib.Path(folder).glob("run/checkpoint/*/weights.safetensors"))  # it stops behind the window
        with safetensors.safe_open(weights, "np") as saved:
            parameters = len(list(saved.keys()))
    profile = json.loads(result.stdout)
    calls = {f"{op['name']} {op['way']}".strip(): op["calls"] for op in profile["ops"]}
    calls |= {f"range {part['name']}": part["calls"] for part in profile["ranges"]}
    return calls, parameters, len(profile["profiled_steps"])


def counts_of_torch(model, descent, x, answers, clip, steps):
    phase = torch.profiler.record_function

    def step():
        with phase("forward"):
            loss = F.cross_entropy(model(x).flatten(0, -2), answers.flatten()) if x.dtype == torch.int64 else F.cross_entropy(model(x), answers)
        with phase("backward"):
            loss.backward()
        if clip:
            with phase("clip"):
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        with phase("optimizer"):
            descent.step()
            descent.zero_grad()

    for _ in range(2):  # moments and gradients are made in the first
        step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as trace:
        for _ in range(steps):
            step()
    calls = collections.Counter()
    for event in trace.events():
        around = event
        while around and around.name not in ("forward", "backward", "clip", "optimizer"):
            around = around.cpu_parent
        if around is not event:
            calls[f"{around.name if around else 'outside'} {event.name}"] += 1
    return dict(calls)


def cases():
    digits, labels = torch.rand(BATCH, 64), torch.arange(BATCH) % 10
    for activation, dropout, optimizer, clip in (("relu", 0, "adam", 0), ("gelu", 0.1, "sgd", 1.0), ("relu", 0, "momentum", 0)):
        model = torch_mlp.mlp([64, 32, 24, 10], activation, dropout)
        options = ["--data", "digits", "--hidden", "32,24", "--activation", activation, "--dropout", str(dropout), "--optimizer", optimizer]
        name = f"mlp 64-32-24-10, {activation}, dropout {dropout}, {optimizer}"
        yield name, options, model, torch_mlp.optimizer(optimizer, model.parameters(), 1e-3), digits, labels, clip
    model = torch_gpt.Gpt(vocabulary=12, context=16, layers=2, heads=2, width=32)
    ids = torch.randint(0, 12, (BATCH, 17))
    options = ["--data", "task:copy:length=5,symbols=8", "--layers", "2", "--heads", "2", "--width", "32", "--optimizer", "adamw",
               "--weight-decay", "0.1"]
    yield "gpt of 2 blocks, adamw", options, model, torch_gpt.optimizer(model, 1e-3, 0.1), ids[:, :-1], ids[:, 1:], 1.0


def main():
    failed = False
    for name, options, model, descent, x, answers, clip in cases():
        ours, parameters, steps = counts_of_tapedeck(sys.argv[1], options + (["--clip", str(clip)] if clip else []))
        theirs = counts_of_torch(model, descent, x, answers, clip, steps)
        lines, wrong, known = compare(ours, theirs, parameters, bool(clip))
        print(f"{name}, {f'clipped at {clip}' if clip else 'not clipped'}: calls of {steps} steps")
        print("\n".join(f"  {line}" for _, line in lines))
        if wrong:
            failed = True
            print("\n".join(f"  WRONG: {line}" for line in wrong))
            continue
        print("\n".join(f"  {line}" for line in alone(ours, theirs, known)))
        altered, missed = unnoticed(ours, theirs, parameters, bool(clip), known)
        print(f"  {sum(n for n, _ in lines)} counts agree; of {altered} counts altered by one {altered - len(missed)} were noticed")
        failed |= bool(missed)
        if missed:
            print(f"  WRONG: altered without notice: {', '.join(missed)}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
