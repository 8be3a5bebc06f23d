"""Today's answers equal the frozen ones to 1e-9."""

import numpy as np
import pytest

from .answers import PATH, arrays, read
from .cases import CASES


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_answers_equal_the_frozen_ones(case: str) -> None:
    for library in CASES[case].needs:
        pytest.importorskip(library)
    frozen, found = read(case), arrays(case, CASES[case].run())
    assert frozen
    assert found.keys() == frozen.keys()
    for key, want in frozen.items():
        got = found[key]
        assert got.shape == want.shape, key
        if want.dtype.kind == "f":
            tolerance = CASES[case].tolerance
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=key)
        else:
            np.testing.assert_array_equal(got, want, err_msg=key)


def test_file_holds_the_cases_and_no_others() -> None:
    with np.load(PATH, allow_pickle=False) as file:
        assert {key.split("/")[0] for key in file.files} == CASES.keys()
