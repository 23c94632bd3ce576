"""From a pattern's checked text to what is searched and kept, by part: names, tail, functions, episodes, ranking."""
