"""From a pattern's checked text to what is searched and kept, a part each: names, tail, functions, episodes, ranking."""
