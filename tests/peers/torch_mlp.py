"""The MLP and its optimizers as PyTorch writes them; shared by the comparisons."""
import torch


ACTIVATIONS = {"relu": torch.nn.ReLU, "gelu": lambda: torch.nn.GELU(approximate="tanh")}


def mlp(widths, activation="relu", dropout=0.0):
    layers = []
    for inputs, outputs in zip(widths[:-1], widths[1:-1]):
        layers += [torch.nn.Linear(inputs, outputs), ACTIVATIONS[activation]()]
        layers += [torch.nn.Dropout(dropout)] if dropout else []
    return torch.nn.Sequential(*layers, torch.nn.Linear(*widths[-2:]))


def optimizer(name, parameters, lr, weight_decay=0.0, **options):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=lr, weight_decay=weight_decay)
    if name == "momentum":
        return torch.optim.SGD(parameters, lr=lr, momentum=0.9, weight_decay=weight_decay)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    return kind(parameters, lr=lr, weight_decay=weight_decay, **options)
