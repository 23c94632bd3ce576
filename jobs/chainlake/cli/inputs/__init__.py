"""The files that verbs are given: events of any kind, landed files of a source, labelled occurrences."""
