import pytest
import torch
from torch.nn.functional import cosine_similarity, cross_entropy

from lexical_sae.models.heads import BcosHead, ReluHead
from lexical_sae.training.word_vectors import learn_together, write_out

HEADS = {"relu": ReluHead.Config(hidden_units=64), "bcos": BcosHead.Config(hidden_units=64)}


def embeddings():
    """Word 1 is near to word 0; the others are far from both."""
    rows = torch.randn(200, 32)
    rows[1] = rows[0] + 0.05 * torch.randn(32)
    return rows


@pytest.fixture(params=list(HEADS))
def head(request):
    torch.manual_seed(0)
    return HEADS[request.param].build(200, 2)


def rows_of(head):
    return getattr(head, head.word_layer)


def test_learning_together_starts_where_the_words_are(head):
    before = rows_of(head).detach().clone()
    learn_together(head, embeddings())
    assert torch.equal(rows_of(head), before)
    learn_together(head, embeddings())
    assert torch.equal(rows_of(head), before)


def test_what_one_word_learns_moves_near_words_along_and_far_ones_less(head):
    learn_together(head, embeddings())
    before = rows_of(head).detach().clone()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.5)
    text = torch.zeros(1, 200)
    text[0, 0] = 1.0
    for _ in range(5):
        optimizer.zero_grad()
        cross_entropy(head(text).logits, torch.tensor([1])).backward()
        optimizer.step()
    moved = rows_of(head).detach() - before
    own, near, far = moved[0].norm(), moved[1].norm(), moved[2:].norm(dim=1).mean()
    assert own > near > 3 * far
    assert cosine_similarity(moved[0], moved[1], dim=0) > 0.95


def test_written_out_the_head_decides_bitwise_as_before_and_is_plain_again(head):
    plain = list(head.state_dict())
    learn_together(head, embeddings())
    torch.nn.init.normal_(head.parametrizations[head.word_layer][0].projection)
    text = torch.rand(3, 200)
    decided = head(text).logits
    assert list(head.state_dict()) != plain
    write_out(head)
    assert torch.equal(head(text).logits, decided)
    assert sorted(head.state_dict()) == sorted(plain)
    assert type(head) in (ReluHead, BcosHead)


def test_writing_out_what_learned_alone_changes_nothing(head):
    before = rows_of(head).detach().clone()
    write_out(head)
    assert torch.equal(rows_of(head), before)
