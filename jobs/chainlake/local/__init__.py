"""Airflow on one machine: embedded database, configuration, launcher, and the programs behind ``make run``."""
