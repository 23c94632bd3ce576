"""Health check of a container: whether one of its pages answers, or Airflow's page reports a component as healthy.

python healthy.py URL         the page answers
python healthy.py URL PART    the page is JSON, and its ``PART.status`` is ``healthy``
"""

import json
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=8) as answer:
    text = answer.read()
sys.exit(0 if len(sys.argv) == 2 or json.loads(text)[sys.argv[2]]["status"] == "healthy" else 1)
