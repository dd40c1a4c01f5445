#!/usr/bin/env python3
"""Records a model of Hugging Face's transformers as a case that `tally verify model` replays.

    tools/record_case.py MODEL_FOLDER OUT            a decoder that lies in a folder
    tools/record_case.py --random CONFIG_FOLDER OUT  the same architecture with random weights

Writes OUT/config.json, OUT/model.safetensors (F32) and OUT/case.safetensors: input_ids, labels, logits,
loss, grad.<weight>, the float64 logits64 and loss64, and a greedy continuation. Tolerances follow
from the distance between the library's own float32 and float64 runs. Models of a few megabytes at
most: every gradient is stored. Needs: pip install torch transformers safetensors.
"""
import argparse
import contextlib
import copy
import pathlib
import shutil

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

BATCH, TOKENS, PROMPT, STEPS = 2, 17, 9, 12


def load(folder, is_random, seed):
    torch.manual_seed(seed)
    if not is_random:
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                    attn_implementation="eager").eval()
    config = AutoConfig.from_pretrained(folder)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():  # norms and biases too: what is 1 or 0 hides mistakes
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * (0.5 / p.shape[-1] ** 0.5 if p.dim() > 1 else 0.3)
                    + (1.0 if p.dim() == 1 and p.abs().max() == 1 else 0.0))
        stored = model.state_dict()
        for name, b in model.named_buffers():  # what is saved and not trained
            if name in stored and b.is_floating_point():
                b.copy_(b + 0.3 * torch.randn_like(b))
    return model


def run(model, ids, labels):
    model.zero_grad()
    logits = model(ids, use_cache=False).logits
    shifted = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1), ignore_index=-100)
    shifted.backward()
    return logits.detach(), shifted.detach()


@contextlib.contextmanager
def wide():
    """What says float32 means float64: models cast here and there (norms, routers, angles)."""
    changed = [(torch.nn.functional, "softmax"), (torch.Tensor, "to"), (torch, "arange"),
               (torch, "tensor"), (torch, "zeros")]
    before = [getattr(owner, name) for owner, name in changed]
    as_float = torch.Tensor.float

    def widened(value):
        return torch.float64 if value is torch.float32 else value

    def wide_form(function):
        return lambda *args, **named: function(*map(widened, args),
                                               **{key: widened(v) for key, v in named.items()})

    for (owner, name), function in zip(changed, before):
        setattr(owner, name, wide_form(function))
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
        torch.Tensor.float = as_float
        for (owner, name), function in zip(changed, before):
            setattr(owner, name, function)


def run64(model, ids, labels):
    """The same model built in float64: what it computes of its sizes (angles, scales) is too."""
    config = copy.deepcopy(model.config)
    config.dtype = torch.float64
    with wide():
        twin = AutoModelForCausalLM.from_config(config, attn_implementation="eager").double().eval()
        twin.load_state_dict(model.state_dict())
        if hasattr(twin, "set_experts_implementation"):
            twin.set_experts_implementation("eager")
        return run(twin, ids, labels)


def greedy(model, prompt):
    ids, tokens, chosen = prompt, [], []
    with torch.no_grad():
        for _ in range(STEPS):
            last = model(ids, use_cache=False).logits[:, -1]
            chosen.append(last)
            tokens.append(last.argmax(-1))
            ids = torch.cat([ids, tokens[-1][:, None]], 1)
    return torch.stack(tokens, 1), torch.stack(chosen, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--random", action="store_true", help="random weights, not the folder's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()
    model = load(options.model, options.random, options.seed)
    vocabulary = model.config.get_text_config().vocab_size
    ids = torch.randint(vocabulary, (BATCH, TOKENS))
    labels = ids.clone()
    labels[torch.rand(labels.shape) < 0.15] = -100

    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")  # the others know no float64
    logits, loss = run(model, ids, labels)
    gradients = {"grad." + name: p.grad.clone() for name, p in model.named_parameters()
                 if p.grad is not None}
    tokens, chosen = greedy(model, ids[:, :PROMPT])
    logits64, loss64 = run64(model, ids, labels)
    noise = ((logits - logits64).abs().max() / logits64.abs().max()).item()

    options.out.mkdir(parents=True)
    model.save_pretrained(options.out)
    for extra in options.out.iterdir():
        if extra.name not in ("config.json", "model.safetensors"):
            shutil.rmtree(extra) if extra.is_dir() else extra.unlink()
    case = {"input_ids": ids, "labels": labels, "logits": logits, "loss": loss, "logits64": logits64,
            "loss64": loss64, "prompt": ids[:, :PROMPT].contiguous(), "greedy": tokens,
            "greedy_logits": chosen, **gradients}
    with safe_open(options.out / "model.safetensors", "pt") as stored:
        untrained = dict(model.named_buffers())
        unknown = [name for name in stored.keys()
                   if "grad." + name not in gradients and name not in untrained]
    if unknown:
        raise SystemExit(f"{options.model}: {unknown[0]} is stored under a name that the model in "
                         "memory does not have (experts of a mixture): its gradient cannot be named")
    save_file({k: v.contiguous() for k, v in case.items()}, options.out / "case.safetensors",
              {"attn_implementation": "eager", "logits_noise": str(noise),
               "tol_logits": str(max(2e-5, 8 * noise)), "tol_grad": "1e-4"})
    print(f"{options.out}: {sum(p.numel() for p in model.parameters())} parameters, "
          f"float32 noise {noise:.1e}")


if __name__ == "__main__":
    main()
