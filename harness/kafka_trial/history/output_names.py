"""The names of the files that certificates, records of upgrades, matrices of cuts and several audits consist of.

They stand below the reports that write them, for whoever must tell these files from a consumer's own.
"""

from typing import Final

CERTIFICATE: Final = "certificate.json"
CERTIFICATE_PAGE: Final = "index.html"
BASELINE: Final = "baseline"  # the folder of a baseline's certificate, beside that of what is compared with it
UPGRADE: Final = "upgrade.json"
UPGRADE_PAGE: Final = "index.html"
JUNIT: Final = "junit.xml"
CUT_ROWS: Final = "cuts.jsonl"
CUT_PAGE: Final = "cuts.html"
CUT_TEXT: Final = "cuts.txt"
CUT_CONSUMERS: Final = "cuts-consumers.json"
AUDITS: Final = "audits.json"
AUDITS_PAGE: Final = "audits.html"
