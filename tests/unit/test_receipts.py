"""What may be a receipt, and how many there may be: one rule for loops and workflows."""

from __future__ import annotations

import pytest

from treadle.core.errors import InvalidReceipt
from treadle.core.receipts import LONGEST, MOST, accounted_for


@pytest.mark.req("TC-11")
def test_a_receipt_has_1_to_512_characters_however_many_bytes_they_are() -> None:
    assert not accounted_for("a", set())
    assert not accounted_for("\U0001f600" * 512, set())
    for bad in ("", "x" * (LONGEST + 1), 7, None, b"x"):
        with pytest.raises(InvalidReceipt, match="1 to 512 characters"):
            accounted_for(bad, set())


@pytest.mark.req("TC-11")
def test_the_65537th_is_refused_and_a_known_one_never() -> None:
    known = {f"{number}" for number in range(MOST - 1)}
    assert not accounted_for("the last", known)
    known.add("the last")
    assert len(known) == 65_536
    assert accounted_for("0", known)
    with pytest.raises(InvalidReceipt, match="at most 65,536"):
        accounted_for("one more", known)
