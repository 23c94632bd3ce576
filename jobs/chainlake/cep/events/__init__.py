"""Events as the engine sees them: typed columns, kinds of value, clocks, ids, histories."""
