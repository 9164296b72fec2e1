"""The test tools themselves: what they must refuse, they refuse."""

import socket

import pytest
from pytest_socket import SocketConnectBlockedError

from tests.strict_client import HtmlError, parse_strictly

GOOD = '<!DOCTYPE html><html lang="de"><head><title>T</title></head><body><h1>H</h1></body></html>'


def test_a_good_page_and_a_good_fragment_pass() -> None:
    """A whole page and a table row on its own are accepted."""
    assert parse_strictly(GOOD).get("lang") == "de"
    assert len(parse_strictly("<tr><td>1</td></tr>")) == 1


@pytest.mark.parametrize(
    ("html", "complaint"),
    [
        (GOOD.replace("</h1>", ""), "line 1"),
        (GOOD.replace("<h1>H</h1>", "<h1>H</h1><p></div>"), "line 1"),
        (GOOD.replace("<h1>", '<h1 id="a" id="b">'), "line 1"),
        (GOOD.replace("<h1>H</h1>", '<h1 id="a">H</h1><p id="a"></p>'), "more than once"),
        (GOOD.replace(' lang="de"', ""), "lang"),
        (GOOD.replace("<title>T</title>", "<title></title>"), "title"),
        (GOOD.replace("<h1>H</h1>", "<p>H</p>"), "0 h1"),
        (GOOD.replace("<h1>H</h1>", "<h1>H</h1><h1>I</h1>"), "2 h1"),
        ("<p>1 & 2 &nosuch; <b></p>", "line 1"),
    ],
)
def test_bad_html_is_refused(html: str, complaint: str) -> None:
    """Parse errors, doubled ids, a missing language, title or heading are refused."""
    with pytest.raises(HtmlError, match=complaint):
        parse_strictly(html)


def test_tests_cannot_reach_the_network() -> None:
    """A connection beyond the loopback addresses is refused before it is tried."""
    # pytest-socket warns before it raises, and warnings are errors here
    refused = pytest.raises((SocketConnectBlockedError, UserWarning), match="tried to use socket")
    with socket.socket() as outside, refused:
        outside.connect(("192.0.2.1", 80))
