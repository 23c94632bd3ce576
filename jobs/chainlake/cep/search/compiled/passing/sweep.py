"""The passes over the events that leave candidates out, as machine code.

Events are taken in blocks of neighbours. One pass finds, for each block, the value that is passed most easily among the
events with which candidates are compared; from these follows, for each block, the limit of its candidates, whatever is
in reach of one of them. A second pass writes the rows, times and values of the candidates that pass.

Values are compared as whole numbers, their *keys*: the bits of a double, mirrored if it is negative, are in the order
of doubles, and the complement of a key turns the order around. So each comparison asks if a key is at most a limit.
The two zeros of doubles have the keys 0 and -1, and so have their complements.
"""

from __future__ import annotations

#: A block has 2^SHIFT neighbouring events.
SHIFT = 7
BLOCK = 1 << SHIFT
#: Candidates are listed in parts of 2^_PART events, which stay in a processor's nearest cache.
_PART = 12
#: How many words of eight marks a part has.
WORDS = 1 << _PART - 3
#: Where at most this many events of a block count, words of eight marks are looked at one by one.
_MANY = 6
#: The limit that no value passes; it is the least key, too, except of doubles, among which the keys of NaN are beyond
#: those of the infinities.
NOTHING, LEAST = -(2**63), -(0x7FF0 << 48) - 1


def marks_in(word: str) -> str:
    """Code for the number of marks among eight that are read as one number."""
    return f"((({word} * 0x0101010101010101) >> 56) & 255)"


def _key(bits: str) -> str:
    """Code for a value's key; ``mirror`` is 2^63 - 1 for doubles, else 0, and ``turn`` is -1 for the complement."""
    return f"({bits} ^ (({bits} >> 63) & mirror) ^ turn)"


#: ``ki`` holds the number of events, the window, how many limits, reaches and names there are, and then one description
#: after another, whose numbers are those of arrays unless they count something.
#:
#: * a limit: mirror, turn, least key, how many rows are listed (-1: it goes by marks), values, best, rows or words
#: * a reach: best, before?, behind?, the limit of each block
#: * a name: words, rows, times, how many comparisons and columns, then these
#: * a comparison: mirror, turn, least key, strict?, values, the limit of each block
#: * a column: values, found
SOURCE = f"""def kernel(F, I, B, J, kf, ki, st):
    ts = I[0]
    lows = I[1]
    highs = I[2]
    queue = I[3]
    hit_words = I[4]
    hits = B[0]
    size = ki[0]
    window = ki[1]
    blocks = (size + {BLOCK - 1}) >> {SHIFT}
    low = 0
    high = 0
    for block in range(blocks):
        begin = block << {SHIFT}
        end = min(begin + {BLOCK}, size)
        first = ts[begin] - window
        last = ts[end - 1] + window
        while low < block and ts[(low << {SHIFT}) + {BLOCK - 1}] < first:
            low += 1
        while high + 1 < blocks and ts[(high + 1) << {SHIFT}] <= last:
            high += 1
        lows[block] = low
        highs[block] = high
    at = 5
    for job in range(ki[2]):
        mirror = ki[at]
        turn = ki[at + 1]
        least = ki[at + 2]
        listed = ki[at + 3]
        values = I[ki[at + 4]]
        best = I[ki[at + 5]]
        words = I[ki[at + 6]]
        at += 7
        for i in range(listed):
            key = {_key("values[i]")}
            block = words[i] >> {SHIFT}
            if key >= least and key <= ~least and key > best[block]:
                best[block] = key
        if listed >= 0:
            continue
        for block in range(blocks):
            begin = block << {SHIFT}
            end = min(begin + {BLOCK}, size)
            total = 0
            for word in range(begin >> 3, (end + 7) >> 3):
                total += words[word]
            total = {marks_in("total")}
            limit = {NOTHING}
            if total > {_MANY}:
                for word in range((end - begin + 7) >> 3):
                    hit_words[word] = words[(begin >> 3) + word]
                for k in range(end - begin):
                    key = {_key("values[begin + k]")}
                    key = key if (hits[k] != 0) & (key >= least) & (key <= ~least) else {NOTHING}
                    limit = max(limit, key)
            elif total != 0:
                for word in range(begin >> 3, (end + 7) >> 3):
                    marks = words[word]
                    row = word << 3
                    while marks != 0:
                        if marks & 255 != 0:
                            key = {_key("values[row]")}
                            if key >= least and key <= ~least and key > limit:
                                limit = key
                        marks >>= 8
                        row += 1
            best[block] = limit
    for job in range(ki[3]):
        best = I[ki[at]]
        limits = I[ki[at + 3]]
        begin = 0
        end = 0
        after = 0
        for block in range(blocks):
            low = lows[block] if ki[at + 1] != 0 else block
            high = highs[block] if ki[at + 2] != 0 else block
            while after <= high:
                limit = best[after]
                while end > begin and best[queue[end - 1]] <= limit:
                    end -= 1
                queue[end] = after
                end += 1
                after += 1
            while queue[begin] < low:
                begin += 1
            limits[block] = best[queue[begin]]
        at += 4
    described = at
    for name in range(ki[4]):
        st[name] = 0
    begin = 0
    while begin < size:
        end = min(begin + {1 << _PART}, size)
        part = (end - begin + 7) >> 3
        at = described
        for name in range(ki[4]):
            words = I[ki[at]]
            rows = I[ki[at + 1]]
            times = I[ki[at + 2]]
            compared = ki[at + 3]
            columns = ki[at + 4]
            at += 5
            for word in range(part):
                hit_words[word] = words[(begin >> 3) + word]
            for job in range(compared):
                mirror = ki[at]
                turn = ki[at + 1]
                least = ki[at + 2]
                strict = ki[at + 3]
                values = I[ki[at + 4]]
                limits = I[ki[at + 5]]
                block = begin >> {SHIFT}
                while block << {SHIFT} < end:
                    start = block << {SHIFT}
                    limit = limits[block]
                    if mirror != 0 and (limit == 0 or limit == -1):
                        limit = -strict
                    if limit > {NOTHING}:
                        limit -= strict
                    place = start - begin
                    for k in range(min({BLOCK}, end - start)):
                        key = {_key("values[start + k]")}
                        hits[place + k] = hits[place + k] & (key <= limit) & (key >= least)
                    block += 1
                at += 6
            some = 0
            for word in range(part):
                queue[some] = word
                some += hit_words[word] != 0
            n = st[name]
            first = n
            for i in range(some):
                word = queue[i] << 3
                for k in range(8):
                    rows[n] = begin + word + k
                    n += hits[word + k]
            for i in range(first, n):
                times[i] = ts[rows[i]]
            for job in range(columns):
                values = I[ki[at]]
                found = I[ki[at + 1]]
                at += 2
                for i in range(first, n):
                    found[i] = values[rows[i]]
            st[name] = n
        begin = end
    return 0
"""
