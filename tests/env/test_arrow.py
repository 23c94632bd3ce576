"""Commands that only read do not import pandas, and whoever needs it still gets it."""

from __future__ import annotations

import subprocess
import sys

import pytest

CALLED = "from chainlake.env.arrow import arrow_without_pandas; arrow_without_pandas(); import pyarrow as pa; "


@pytest.mark.parametrize(
    "lines, shown",
    [
        ("pa.array(['a', None]), pa.scalar(1.5), pa.table({'x': [1]}); print('pandas' in sys.modules)", "False"),
        ("import pyarrow.dataset; print('pandas' in sys.modules)", "False"),
        ("print(pa.table({'x': [1.5, None]}).to_pandas()['x'].isna().tolist())", "[False, True]"),
        ("import pandas; print(pa.Table.from_pandas(pandas.DataFrame({'x': [None, 2.5]}))['x'].null_count)", "1"),
        ("print(sys.meta_path == before)", "True"),
    ],
)
def test_arrow_does_without_pandas_until_somebody_asks_for_it(lines: str, shown: str) -> None:
    program = f"import sys; before = [*sys.meta_path]; {CALLED}{lines}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == shown
