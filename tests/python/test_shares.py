import argparse

import pytest

from shares import in_share, share

PLACES = ["a"] * 7 + ["b"] + ["c"] * 2 + ["a"] * 2


def test_shares_together_have_all_cases_once_or_more():
    shares = [in_share(PLACES, which, 3) for which in (1, 2, 3)]
    assert [sum(kept) for kept in zip(*shares, strict=True)] == [1] * 7 + [3] + [2, 1] + [1] * 2


@pytest.mark.parametrize("which", [1, 2, 3])
def test_a_share_has_a_case_of_each_function(which):
    kept = in_share(PLACES, which, 3)
    assert {place for place, keep in zip(PLACES, kept, strict=True) if keep} == {"a", "b", "c"}


def test_one_share_of_one_is_everything():
    assert all(in_share(PLACES, 1, 1))


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/3", "-1/3", ""])
def test_a_share_that_is_none_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="a share is K/N"):
        share(text)


def test_a_share_is_read():
    assert share("2/3") == (2, 3)
