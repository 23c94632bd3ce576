"""Airflow on one machine: its embedded database, configuration, launcher, and the programs behind ``make run``."""
