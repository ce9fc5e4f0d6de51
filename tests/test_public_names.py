import subprocess
import sys

import pytest

import splade


@pytest.mark.parametrize("name", splade.__all__)
def test_every_public_name_is_there(name):
    assert getattr(splade, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        splade.Nonsense  # noqa: B018


def test_importing_the_package_does_not_wait_for_torch():
    script = "import sys, splade; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
