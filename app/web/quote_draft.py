"""A quote request before it is stored: who asks, and the figures frozen as they are now."""

from __future__ import annotations

from app.quotes.notice import MARKETING_VERSION, NOTICE_VERSION
from app.quotes.quote import Quote, Sizing
from app.quotes.request import Contact
from app.quotes.token import FormToken, new_id, now
from app.web.api_answer import answer, work_out
from app.web.case import Case


def draft_quote(case: Case, contact: Contact, token: FormToken) -> Quote:
    """Put a request together. Its reference is drawn when it is stored."""
    moment = now()
    return Quote(
        id=new_id(),
        reference="",
        form_id=token.form_id,
        created_at=moment,
        language=case.place.language,
        status="new",
        contact=contact,
        sizing=_freeze(case),
        notice_version=NOTICE_VERSION,
        marketing_at=moment if contact.marketing else None,
        marketing_version=MARKETING_VERSION if contact.marketing else None,
    )


def _freeze(case: Case) -> Sizing:
    """Keep answers and whole result as the API writes it."""
    sized = work_out(case.form.prepared, case.answers, case.catalogue, case.place.language)
    return Sizing(
        answers=dict(case.form.pairs()),
        result=answer(sized).model_dump(mode="json"),
        permalink=case.permalink(case.answers),
        data_version=case.catalogue.data_version,
    )
