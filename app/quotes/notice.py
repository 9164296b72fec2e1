"""Which wording of the privacy notice and of the marketing box somebody saw.

The words are in `templates/quote/notice.html`; a test ties them to these versions, so that nobody
changes a text without giving it a new version.
"""

from typing import Final

NOTICE_VERSION: Final = "2026-11-29"
MARKETING_VERSION: Final = "2026-11-29"
