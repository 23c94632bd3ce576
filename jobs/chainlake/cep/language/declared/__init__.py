"""What a pattern declares in its front matter: functions (docs/language.md#functions-of-your-own), alerts, tests."""
