"""Pictures of models as PNG files; drawn without a display."""
