"""Certificates: what was taken out of a model or set in it, in a file that anybody can check again.

    certify    a certificate from the model before and after
    verify     every claim of a certificate, checked again from the edited model's folder and the data

Three levels, each claimed only if it was established:

1. construction: the gate holds the words closed, so their strength is bitwise zero for every text; rows of a table are
   as given; and nothing else in the model changed, the input embedding included;
2. effect: what that did to every decision on a named data set, hidden units that switched included;
3. leakage: how well a concept can still be read from the words that are left. Absent where it was not measured.

Hashes tie it to the files. It is no signature: who can write both model and certificate can make both anew.
"""

from splade.certificate.certifying import certify
from splade.certificate.document import (
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
from splade.certificate.effect import NamedTexts, measure_effect
from splade.certificate.verifying import Check, verify, verify_files, verify_model

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
