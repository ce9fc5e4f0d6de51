"""Small models and tokenizers, made on the spot: seven encoder families and three ways of cutting words."""

import functools

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForMaskedLM, PreTrainedTokenizerFast

from lexical_sae.models.backbone import Backbone
from lexical_sae.models.config import ModelConfig
from lexical_sae.models.lexical_sae import LexicalSAE

WORDS = """a an the good bad film films movie great awful terrible wonderful acting plot boring city cities church
churches muslim bank river money is was not and or very un happy i you it dog dogs play
##ing ##ed ##s ##ly ##ness ##happy . , ! ?""".split()  # noqa: SIM905 - a list of strings would be a page long
SPECIALS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CORPUS = [
    "the good film was wonderful and the acting great",
    "a terrible movie with a boring plot and awful acting",
    "the bank near the river has money and the dogs play",
    "Muslim Muslims muslim churches and cities, happy or unhappy people!",
] * 8

GOOD = ["a good film", "the acting was wonderful", "great plot and good acting", "a very good movie"]
BAD = ["a bad film", "the acting was terrible", "awful plot and boring acting", "a very boring movie"]

_WIDTHS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
FAMILIES: dict[str, dict] = {
    "bert": _WIDTHS,
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48},
    "roberta": {**_WIDTHS, "max_position_embeddings": 66, "pad_token_id": 0},
    "albert": {**_WIDTHS, "embedding_size": 16},
    "electra": {**_WIDTHS, "embedding_size": 16},
    "deberta-v2": {**_WIDTHS, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "modernbert": {**_WIDTHS, "global_attn_every_n_layers": 2},
}


@functools.cache
def wordpiece() -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate([*SPECIALS, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # pyright: ignore[reportCallIssue]
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 3), ("[SEP]", 4)]
    )
    return _wrapped(tokenizer)


@functools.cache
def byte_bpe() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*CORPUS, *(" muslim Muslim MUSLIM good" for _ in range(20))], trainer)
    return _wrapped(tokenizer)


@functools.cache
def sentencepiece() -> PreTrainedTokenizerFast:
    words = ["▁" + word for word in (*WORDS, "Muslim", "Muslims") if word.isalpha()]
    pieces = ["▁", *"abcdefghiklmnoprstuvwyM", "ing"]
    scores = [(piece, 0.0) for piece in SPECIALS] + [(word, -2.0) for word in words] + [(p, -9.0) for p in pieces]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=2))  # pyright: ignore[reportCallIssue]
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _wrapped(tokenizer)


def _wrapped(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def masked_lm(family: str = "bert", vocab_size: int | None = None, seed: int = 0):
    torch.manual_seed(seed)
    settings = {"max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 3, "eos_token_id": 4}
    settings |= {"cls_token_id": 3, "sep_token_id": 4, **FAMILIES[family]}
    config = AutoConfig.for_model(family, vocab_size=vocab_size or len(wordpiece()), **settings)
    model = AutoModelForMaskedLM.from_config(config)
    with torch.no_grad():
        # Fresh models give logits near zero; spread them so that gates have something to decide.
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def saved_encoder(folder):
    """A folder as `model.name` may give it: a tiny masked LM with its tokenizer."""
    masked_lm().save_pretrained(folder)
    wordpiece().save_pretrained(folder)
    return folder


def backbone(family: str = "bert", **settings) -> Backbone:
    return Backbone(masked_lm(family, **settings), wordpiece()).eval()


def model(config: ModelConfig | None = None, family: str = "bert", **settings) -> LexicalSAE:
    labels = {"classify": ["negative", "neutral", "positive"], "tag": ["O", "B-PER", "I-PER", "B-LOC"]}
    torch.manual_seed(1)
    return LexicalSAE(config or ModelConfig(gate="drelu"), backbone(family, **settings), labels).eval()


def batch(length: int = 9, rows: int = 4, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Ragged token ids, padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(6, len(wordpiece()), (rows, length), generator=generator)
    lengths = torch.randint(2, length + 1, (rows,), generator=generator)
    lengths[0] = length
    mask = torch.arange(length)[None] < lengths[:, None]
    return ids.masked_fill(~mask, 0), mask
