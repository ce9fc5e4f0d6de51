import pytest
import torch
from jaxtyping import TypeCheckError

from lexical_sae.mechanistic.attribution import compute_attribution_tensor


def test_a_wrong_shape_is_caught_while_tests_run():
    right = torch.zeros(2, 5), torch.zeros(2, 3, 5), torch.zeros(2, dtype=torch.long)
    assert compute_attribution_tensor(*right).shape == (2, 5)
    with pytest.raises(TypeCheckError):
        compute_attribution_tensor(torch.zeros(2, 4), *right[1:])
