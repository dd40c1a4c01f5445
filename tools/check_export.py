#!/usr/bin/env python3
"""Exports recorded models with `tally export` and loads them with Hugging Face's transformers.

    tools/check_export.py [--program build/tally] FOLDER ...

Each FOLDER holds config.json, model.safetensors and case.safetensors (tests/data/models). The logits
that transformers computes from the exported folder must be those that are recorded, within the
recorded tolerance. Needs: pip install torch transformers safetensors. Exit code 1 if one differs.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

# What a recording holds of an input, by what the model calls it.
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "decoder_input_ids")


def recorded(folder, kind):
    with safe_open(folder / "case.safetensors", "pt") as case:
        names = INPUTS if kind is not AutoModelForCausalLM else INPUTS[:1]
        inputs = {name: case.get_tensor(name) for name in names if name in case.keys()}
        return inputs, case.get_tensor("logits"), case.metadata()


def kind_of(config):
    if config.get("is_encoder_decoder"):
        return AutoModelForSeq2SeqLM
    return AutoModelForMaskedLM if config["model_type"] == "bert" else AutoModelForCausalLM


def exported_error(program, folder, kind):
    inputs, logits, metadata = recorded(folder, kind)
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out"
        subprocess.run([program, "export", str(folder), "--out", str(out)], check=True,
                       stdout=subprocess.DEVNULL)
        model = kind.from_pretrained(
            out, dtype=torch.float32, experts_implementation="eager",
            attn_implementation=metadata.get("attn_implementation", "eager")).eval()
        cached = {} if kind is AutoModelForMaskedLM else {"use_cache": False}
        with torch.no_grad():
            ours = model(**inputs, **cached).logits
    return ((ours - logits).abs().max() / logits.abs().max()).item(), float(metadata["tol_logits"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/tally")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    bad = 0
    for folder in options.folders:
        config = json.loads((folder / "config.json").read_text())
        if config["model_type"].endswith("_ref"):
            print(f"{folder.name:24} has no published family")
            continue
        try:
            error, bound = exported_error(options.program, folder, kind_of(config))
        except Exception as problem:  # what transformers refuses is a result too
            print(f"{folder.name:24} FAILED: {str(problem).splitlines()[0]}")
            bad += 1
            continue
        verdict = "ok" if error <= bound else "BEYOND"
        bad += verdict != "ok"
        print(f"{folder.name:24} {error:.2e} of {bound:.2e} {verdict}", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
