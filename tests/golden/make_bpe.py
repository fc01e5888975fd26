# SPDX-License-Identifier: MIT
"""Writes tests/golden/bpe.json: the merges that the Python package `tokenizers` learns from
tests/golden/long.txt, and the ids that its tokenizer gives to some texts.

    pip install tokenizers==0.23.3 && python3 tests/golden/make_bpe.py
"""
import json
import pathlib

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent
VOCAB = 480
TEXTS = [
    "Sir Walter Elliot, of Kellynch Hall",
    "  two  spaces\n\n\tand a tab",
    "In 2024, 3.14 x 100! don't we'll I'd",
    "caf\u00e9 \u65e5\u672c \U0001f600 \u00a0end ",
]

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.train_from_iterator(
    [(HERE / "long.txt").read_text(encoding="utf-8")],
    trainers.BpeTrainer(
        vocab_size=VOCAB,
        min_frequency=2,
        special_tokens=["<|bos|>", "<|eos|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    ),
)
merges = [" ".join(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]
result = {
    "vocab": VOCAB,
    "merges": merges,
    "texts": [{"text": text, "ids": tokenizer.encode(text).ids} for text in TEXTS],
}
(HERE / "bpe.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
