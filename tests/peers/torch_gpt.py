"""A GPT as PyTorch's users write it: pre-norm blocks, fused attention, GPT-2's initialisation, the head tied to the
embedding. Its parameters take tapedeck's names, so that weights pass from one to the other."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        heads = [part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, 2)]
        seen = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.mix(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.shrink(F.gelu(self.grow(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                onto_stream = name.endswith(("mix.weight", "shrink.weight"))
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * layers) if onto_stream else 1))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight)


def our_name(name):
    """blocks.0.norm1.weight -> gpt.block0.norm1.gain"""
    name = name.replace("blocks.", "block")
    if "norm" in name:
        name = name.replace(".weight", ".gain")
    return "gpt." + name.replace("tokens.weight", "tokens.table").replace("positions.weight", "positions.table")


def optimizer(model, lr, weight_decay, **options):
    """AdamW that decays matrices only, as tapedeck's."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, **options)


def rate(step, base, warmup, total):
    """Linear warm-up, then cosine down to a tenth; of the step that follows `step` finished ones."""
    if step < warmup:
        return base * (step + 1) / warmup
    progress = (step - warmup) / max(total - 1 - warmup, 1)
    return base * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(progress, 1))))
