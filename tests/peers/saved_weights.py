"""The weights of a run as the Python packages see them: model.safetensors read by safetensors.numpy and by
safetensors.torch, the archive of `tapedeck export` read by numpy.load, and a file that safetensors.torch wrote read by
tapedeck. All must hold the same arrays, bit for bit. Exits with 1 when they do not.
usage: saved_weights.py TAPEDECK"""
import pathlib
import subprocess
import sys
import tempfile

import numpy
import safetensors
import safetensors.numpy
import safetensors.torch
import torch


def tapedeck(program, *arguments):
    result = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def compare(what, found, wanted):
    if sorted(found) != sorted(wanted):
        sys.exit(f"{what}: holds {sorted(found)}, not {sorted(wanted)}")
    for name, array in wanted.items():
        other = found[name]
        if (other.dtype, other.shape, other.tobytes()) != (array.dtype, array.shape, array.tobytes()):
            sys.exit(f"{what}: {name} is {other.dtype} {other.shape}, or other numbers than {array.dtype} {array.shape}")
    print(f"{what}: {len(wanted)} arrays, the same")


def check_run(program, precision, scratch):
    run, archive = scratch / precision, scratch / f"{precision}.npz"
    tapedeck(program, "train", "--data", "blobs", "--steps", 20, "--precision", precision, "--quiet", "--out", run)
    model = run / "model.safetensors"
    with safetensors.safe_open(model, "pt") as file:  # the metadata by which transformers knows a file for PyTorch
        if file.metadata()["format"] != "pt":
            sys.exit(f"{model}: its metadata is {file.metadata()}")
    weights = safetensors.numpy.load_file(model)
    as_torch = {name: tensor.numpy() for name, tensor in safetensors.torch.load_file(model).items()}
    compare(f"{precision}: safetensors.torch", as_torch, weights)
    tapedeck(program, "export", run, "--to", archive)
    compare(f"{precision}: numpy.load of the export", dict(numpy.load(archive)), weights)
    saved_again = scratch / f"{precision}.again.safetensors"
    safetensors.torch.save_file(safetensors.torch.load_file(model), saved_again)
    tapedeck(program, "export", saved_again, "--to", archive, "--force")
    compare(f"{precision}: written by safetensors.torch", dict(numpy.load(archive)), weights)


def check_types(program, scratch):
    """What runs do not have yet: 16 bits, whole numbers, scalars, no elements, odd names."""
    tensors = {
        "scalar": torch.tensor(2.5),
        "none": torch.zeros(0, 4),
        "dir/größe": torch.arange(6, dtype=torch.int32).reshape(2, 3),
        "half": torch.tensor([0.1, -65504.0, 6e-8], dtype=torch.float16),
        "brain": torch.tensor([0.1, -3e38, 1e-40], dtype=torch.bfloat16),
    }
    safetensors.torch.save_file(tensors, scratch / "types.safetensors", metadata={"note": "by PyTorch"})
    tapedeck(program, "export", scratch / "types.safetensors", "--to", scratch / "types.npz")
    wanted = {n: (t.float() if t.dtype == torch.bfloat16 else t).numpy() for n, t in tensors.items()}
    compare("types", dict(numpy.load(scratch / "types.npz")), wanted)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        for precision in "fp32", "fp64":
            check_run(program, precision, pathlib.Path(scratch))
        check_types(program, pathlib.Path(scratch))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
