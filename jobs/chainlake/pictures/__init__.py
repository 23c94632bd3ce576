"""Pictures of models and backtests as files, drawn without a display."""
