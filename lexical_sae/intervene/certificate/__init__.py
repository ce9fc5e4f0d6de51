"""Certificates of edits: what was removed from a model or changed in it, in a file that others can verify.

    certify    the certificate of an edit, from the original and the edited model
    verify     every claim checked again, from the edited model's folder and the data

Three levels, each present only if it was established:

1. construction: the words are suppressed in the gate, so their activation is bitwise zero for every text; rows of a
   table are as given; and nothing else in the model changed, the input embedding included;
2. effect: the change of every decision on a named data set, switched hidden units included;
3. leakage: how well a concept can still be read from the remaining words.

Hashes tie it to the files. It is not a signature: whoever can write both model and certificate can forge both.
"""

from lexical_sae.intervene.certificate.certifying import certify
from lexical_sae.intervene.certificate.document import (
    Certificate,
    ChangedRow,
    Construction,
    DataSource,
    Effect,
    Leakage,
    LeakageScore,
    RemovedDimension,
    WordEffect,
    read_certificate,
    write_certificate,
)
from lexical_sae.intervene.certificate.effect import NamedTexts, measure_effect
from lexical_sae.intervene.certificate.verifying import Check, verify, verify_files, verify_model

__all__ = [
    "Certificate",
    "ChangedRow",
    "Check",
    "Construction",
    "DataSource",
    "Effect",
    "Leakage",
    "LeakageScore",
    "NamedTexts",
    "RemovedDimension",
    "WordEffect",
    "certify",
    "measure_effect",
    "read_certificate",
    "verify",
    "verify_files",
    "verify_model",
    "write_certificate",
]
