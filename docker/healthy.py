"""Health check of a container: whether a page of it, or a part that Airflow's page tells of, is well.

python healthy.py URL         the page answers
python healthy.py URL PART    the page is JSON, and its ``PART.status`` is ``healthy``
"""

import json
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=8) as answer:
    text = answer.read()
sys.exit(0 if len(sys.argv) == 2 or json.loads(text)[sys.argv[2]]["status"] == "healthy" else 1)
