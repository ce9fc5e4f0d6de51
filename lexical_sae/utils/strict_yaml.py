"""YAML as people write it by hand, read strictly: no Python tags, no aliases, no key given twice."""

import re
from typing import Any

import yaml
from yaml.composer import ComposerError

from lexical_sae.utils.errors import SettingsError


def parse_yaml(text: str, source: str) -> Any:
    """The plain values of a YAML text; `source` is named in errors."""
    try:
        return yaml.load(text, Loader=StrictLoader)
    except yaml.YAMLError as error:
        raise SettingsError(f"{source}: not valid YAML: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{source}: nested too deeply") from error


class StrictLoader(yaml.SafeLoader):
    """The safe loader, which also refuses aliases and a key that is given twice, and reads 3e-4 as a number."""

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            # A few nested aliases can stand for more values than memory holds.
            mark = self.peek_event().start_mark
            raise ComposerError(None, None, "aliases are not allowed; write the value out", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is not a name", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


# YAML 1.1 wants a dot in a float; people write 3e-4.
StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
