"""The programs behind ``make run`` and ``make airflow``."""
