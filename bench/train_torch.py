"""The PyTorch side of compare_training.py: a training step (forward, backward, fused AdamW) of a
small language model on the CPU, driven over stdin and stdout, one line a command, one JSON line an
answer:

    save DIR    write the weights as DIR/model.safetensors and DIR/config.json (Hugging Face names)
    load DIR    read them
    run N       N steps; seconds and loss of each
    rss         peak resident memory in MB, and what it was after the imports
    quit

Batch number i is a pure function of i, the same in train_step.cpp, so losses can be compared.
usage: train_torch.py MODEL MODE [--threads N]     MODE: eager | compile | medium | bf16
"""
import argparse
import json
import os
import resource
import sys
import time

SHAPES = {
    "tiny-gpt": dict(family="gpt2", layers=6, d=384, heads=6, context=256, vocab=256, ff=1536,
                     batch=8),
    "tiny-llama": dict(family="llama", layers=6, d=384, heads=6, context=256, vocab=256, ff=1024,
                       batch=8),
    "gpt2": dict(family="gpt2", layers=12, d=768, heads=12, context=1024, vocab=50257, ff=3072,
                 batch=1),
}
LEARNING_RATE, BETAS, EPS, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1

parser = argparse.ArgumentParser()
parser.add_argument("model", choices=SHAPES)
parser.add_argument("mode", choices=["eager", "compile", "medium", "bf16"])
parser.add_argument("--threads", type=int, default=2)
options = parser.parse_args()
shape = SHAPES[options.model]
os.environ["OMP_NUM_THREADS"] = str(options.threads)

import numpy as np
import safetensors.torch
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(options.threads)
torch.manual_seed(0)
if options.mode == "medium":
    torch.set_float32_matmul_precision("medium")


def peak_rss_mb():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def attend(q, k, v, heads):
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).flatten(2)


class GptBlock(nn.Module):
    """GPT-2 keeps its matrices as (in, out); nn.Linear is what PyTorch is fast at, so the weights
    are turned over when they are saved and loaded."""

    def __init__(self, d, ff, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(d, 3 * d), "c_proj": nn.Linear(d, d)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(d, ff), "c_proj": nn.Linear(ff, d)})

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.attn["c_attn"](self.ln_1(x)).split(d, 2)
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in qkv)
        x = x + self.attn["c_proj"](attend(q, k, v, self.heads))
        h = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](h)


class Gpt(nn.Module):
    def __init__(self, s):
        super().__init__()
        d = s["d"]
        self.wte, self.wpe = nn.Embedding(s["vocab"], d), nn.Embedding(s["context"], d)
        self.h = nn.ModuleList(GptBlock(d, s["ff"], s["heads"]) for _ in range(s["layers"]))
        self.ln_f = nn.LayerNorm(d)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class LlamaBlock(nn.Module):
    def __init__(self, d, ff, heads):
        super().__init__()
        self.heads = heads
        linear = lambda n, m: nn.Linear(n, m, bias=False)
        self.input_layernorm = nn.RMSNorm(d, eps=1e-5)
        self.post_attention_layernorm = nn.RMSNorm(d, eps=1e-5)
        self.self_attn = nn.ModuleDict({f"{n}_proj": linear(d, d) for n in "qkvo"})
        self.mlp = nn.ModuleDict({"gate_proj": linear(d, ff), "up_proj": linear(d, ff),
                                  "down_proj": linear(ff, d)})

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        h = self.input_layernorm(x)
        q, k, v = (self.self_attn[f"{n}_proj"](h).view(b, t, self.heads, -1).transpose(1, 2)
                   for n in "qkv")
        y = attend(rotate(q, cos, sin), rotate(k, cos, sin), v, self.heads)
        x = x + self.self_attn["o_proj"](y)
        h = self.post_attention_layernorm(x)
        gated = F.silu(self.mlp["gate_proj"](h)) * self.mlp["up_proj"](h)
        return x + self.mlp["down_proj"](gated)


class Llama(nn.Module):
    def __init__(self, s):
        super().__init__()
        d, half = s["d"], s["d"] // s["heads"] // 2
        self.model = nn.ModuleDict({
            "embed_tokens": nn.Embedding(s["vocab"], d),
            "layers": nn.ModuleList(
                LlamaBlock(d, s["ff"], s["heads"]) for _ in range(s["layers"])),
            "norm": nn.RMSNorm(d, eps=1e-5),
        })
        self.lm_head = nn.Linear(d, s["vocab"], bias=False)
        for table in (self.model["embed_tokens"], self.lm_head):
            nn.init.normal_(table.weight, std=0.02)
        frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(s["context"], dtype=torch.float64)[:, None] * frequencies
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, ids, targets):
        x = self.model["embed_tokens"](ids)
        for block in self.model["layers"]:
            x = block(x, self.cos, self.sin)
        logits = self.lm_head(self.model["norm"](x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def hf_config(s):
    if s["family"] == "gpt2":
        return dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], n_layer=s["layers"],
                    n_embd=s["d"], n_head=s["heads"], n_positions=s["context"], n_inner=s["ff"],
                    vocab_size=s["vocab"], activation_function="gelu_new",
                    layer_norm_epsilon=1e-5, tie_word_embeddings=True)
    return dict(model_type="llama", architectures=["LlamaForCausalLM"],
                num_hidden_layers=s["layers"], hidden_size=s["d"], num_attention_heads=s["heads"],
                num_key_value_heads=s["heads"], intermediate_size=s["ff"],
                max_position_embeddings=s["context"], vocab_size=s["vocab"], hidden_act="silu",
                rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False)


def turned(name):
    """GPT-2's published matrices are (in, out)."""
    return ".c_" in name and name.endswith(".weight")


def save(directory):
    os.makedirs(directory, exist_ok=True)
    tensors = {n: (p.detach().t() if turned(n) else p.detach()).contiguous()
               for n, p in model.named_parameters()}
    safetensors.torch.save_file(tensors, os.path.join(directory, "model.safetensors"))
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(hf_config(shape), file, indent=1)
    return {}


def load(directory):
    tensors = safetensors.torch.load_file(os.path.join(directory, "model.safetensors"))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(tensors[name].t() if turned(name) else tensors[name])
    return {}


def batch(number):
    """Ids of batch `number`: splitmix64 of the position, as train_step.cpp does it."""
    rows, columns = shape["batch"], shape["context"] + 1
    with np.errstate(over="ignore"):
        z = np.arange(rows * columns, dtype=np.uint64) + np.uint64(number * rows * columns)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    ids = torch.from_numpy((z % np.uint64(shape["vocab"])).astype(np.int64)).view(rows, columns)
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def make_optimizer():
    """Decay on matrices only: none on embeddings, norms and biases."""
    def decays(name, p):
        return p.ndim == 2 and not any(t in name for t in ("wte", "wpe", "embed_tokens"))
    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if decays(n, p)], "weight_decay": WEIGHT_DECAY},
        {"params": [p for n, p in named if not decays(n, p)], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=BETAS, eps=EPS, fused=True)


def step(number):
    ids, targets = batch(number)
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=options.mode == "bf16"):
        loss = forward(ids, targets)
    loss.backward()
    optimizer.step()
    value = loss.item()
    return time.perf_counter() - start, value


def run(count):
    global steps_done
    results = [step(steps_done + i) for i in range(count)]
    steps_done += count
    return {"seconds": [r[0] for r in results], "losses": [r[1] for r in results]}


rss_after_import = peak_rss_mb()
model = (Gpt if shape["family"] == "gpt2" else Llama)(shape)
forward = torch.compile(model) if options.mode == "compile" else model
optimizer = make_optimizer()
steps_done = 0


def answer(**fields):
    print(json.dumps(fields), flush=True)


answer(ready=True, peer=f"torch {torch.__version__} {options.mode}",
       parameters=sum(p.numel() for p in model.parameters()),
       tokens_per_step=shape["batch"] * shape["context"])
for line in sys.stdin:
    command, _, argument = line.strip().partition(" ")
    if command == "quit":
        break
    if command == "run":
        answer(**run(int(argument)))
    elif command == "save":
        answer(**save(argument))
    elif command == "load":
        answer(**load(argument))
    elif command == "rss":
        answer(peak_rss_mb=peak_rss_mb(), rss_after_import_mb=rss_after_import)
    else:
        answer(error=f"unknown command: {command}")
