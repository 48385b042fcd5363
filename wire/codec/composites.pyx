"""Scans an encoded performative: finds its fields, and checks each field against `wire.codec.table`. [1.4]

Nested composite types (termini, errors, delivery states) are scanned in the same way. A scan neither allocates nor
raises. A composite type whose descriptor is a symbol and not a number is a fault: the engine knows numbers only.
"""

from libc.string cimport memset

from wire.codec.scan cimport (
    AS_ARRAY32,
    AS_ARRAY8,
    AS_BINARY32,
    AS_BINARY8,
    AS_BOOLEAN,
    AS_DESCRIBED,
    AS_FALSE,
    AS_LIST0,
    AS_LIST32,
    AS_LIST8,
    AS_MAP32,
    AS_MAP8,
    AS_NULL,
    AS_SMALL_UINT,
    AS_SMALL_ULONG,
    AS_STRING32,
    AS_STRING8,
    AS_SYMBOL32,
    AS_SYMBOL8,
    AS_TRUE,
    AS_UBYTE,
    AS_UINT,
    AS_UINT0,
    AS_ULONG,
    AS_ULONG0,
    AS_USHORT,
    CUT,
    MISSING_FIELD,
    NOT_A_LIST,
    NOT_DESCRIBED,
    SYMBOLIC_TYPE,
    TOO_LARGE,
    TOO_LONG,
    TOO_MANY_FIELDS,
    UNKNOWN_TYPE,
    WRONG_SIZE,
    WRONG_TYPE,
    begin_scan,
    big_endian,
    blame,
    is_invalid_field,
    scan_descriptor,
    scan_value,
    sentence_of,
)

from wire.codec import table
from wire.codec.faults import CodecFault

cdef enum:
    MOST_COMPOSITES = 32
    MOST_TYPES = 32
    MOST_NESTED = 8
    NONE = 255


cdef struct FieldRule:
    unsigned char type
    bint is_mandatory
    bint is_bounded
    unsigned long long most


cdef struct CompositeRule:
    unsigned long long code
    int count
    FieldRule fields[MOST_FIELDS]


# Rules for the fields of each composite type, in the order of table.COMPOSITES.
cdef CompositeRule rules[MOST_COMPOSITES]
# Index in ``rules`` by the code of a composite type, all of which are less than 256; NONE for an unknown code.
cdef unsigned char rule_of_code[256]
cdef unsigned char nested[MOST_TYPES][MOST_NESTED]
cdef bint accepts[MOST_TYPES][256]
cdef bint is_nested[MOST_TYPES]
cdef unsigned char KEYS_ARE_SYMBOLS = table.FieldType.FIELDS
cdef unsigned char KEYS_ARE_ANNOTATIONS = table.FieldType.ANNOTATIONS
cdef unsigned char HOLDS_SYMBOLS = table.FieldType.SYMBOLS
cdef unsigned char ULONGS = table.FieldType.ULONG

_UINTS = (AS_UINT0, AS_SMALL_UINT, AS_UINT)
_ULONGS = (AS_ULONG0, AS_SMALL_ULONG, AS_ULONG)
_SYMBOLS = (AS_SYMBOL8, AS_SYMBOL32)
_MAPS = (AS_MAP8, AS_MAP32)
_CONSTRUCTORS = {
    table.FieldType.ANY: tuple(range(256)),
    table.FieldType.BOOLEAN: (AS_TRUE, AS_FALSE, AS_BOOLEAN),
    table.FieldType.UBYTE: (AS_UBYTE,),
    table.FieldType.USHORT: (AS_USHORT,),
    table.FieldType.LOOSE_USHORT: (AS_USHORT, AS_UBYTE, *_UINTS, *_ULONGS),
    table.FieldType.UINT: _UINTS,
    table.FieldType.ULONG: _ULONGS,
    table.FieldType.BINARY: (AS_BINARY8, AS_BINARY32),
    table.FieldType.STRING: (AS_STRING8, AS_STRING32),
    table.FieldType.SYMBOL: _SYMBOLS,
    table.FieldType.SYMBOLS: (
        *_SYMBOLS, AS_ARRAY8, AS_ARRAY32, AS_LIST0, AS_LIST8, AS_LIST32,
    ),
    table.FieldType.FIELDS: _MAPS,
    table.FieldType.MAP: _MAPS,
    table.FieldType.ANNOTATIONS: _MAPS,
}


def _fill():
    cdef int index, place
    if len(table.COMPOSITES) > MOST_COMPOSITES or len(table.FieldType) > MOST_TYPES:
        raise ImportError("wire.codec.table has outgrown wire.codec.composites")
    memset(rule_of_code, NONE, sizeof(rule_of_code))
    memset(nested, NONE, sizeof(nested))
    for index, composite in enumerate(table.COMPOSITES):
        rule_of_code[composite.code] = index
        rules[index].code = composite.code
        rules[index].count = len(composite.fields)
        for place, field in enumerate(composite.fields):
            rules[index].fields[place].type = field.type
            rules[index].fields[place].is_mandatory = field.is_mandatory
            rules[index].fields[place].is_bounded = field.most is not None
            rules[index].fields[place].most = field.most or 0
    for kind, constructors in _CONSTRUCTORS.items():
        for code in constructors:
            accepts[<int>kind][<int>code] = True
    for kind, composites in table.NESTED.items():
        is_nested[<int>kind] = True
        accepts[<int>kind][AS_DESCRIBED] = True
        for place, composite in enumerate(composites):
            nested[<int>kind][place] = composite.code


_fill()


# Functions that read the value of the field at ``at``, once a scan has accepted the performative.
cdef unsigned long long number_at(const unsigned char *at) noexcept:
    """Return the unsigned integer, of any width, that is encoded at ``at``."""
    cdef unsigned char code = at[0]
    if code == AS_UINT0 or code == AS_ULONG0:
        return 0
    if code < 0x60:
        return at[1]
    return big_endian(at + 1, 2 if code < 0x70 else 4 if code < 0x80 else 8)


cdef bint is_true_at(const unsigned char *at) noexcept:
    return at[0] == AS_TRUE or (at[0] == AS_BOOLEAN and at[1] != 0)


cdef const unsigned char *bytes_at(const unsigned char *at, size_t *size) noexcept:
    """Return the place of the bytes of the binary, string or symbol at ``at``; put their number into ``size``."""
    if at[0] < 0xB0:
        size[0] = at[1]
        return at + 2
    size[0] = big_endian(at + 1, 4)
    return at + 5


cdef const unsigned char *scan_performative(
    Scan *scan, const unsigned char *at, unsigned long long *code, Fields *fields, Fault *fault
) noexcept:
    """Scan the performative at ``at``; return its end, or NULL with the finding in ``scan`` and its place in ``fault``.

    ``code`` gets the descriptor of the composite type, ``fields`` the places of its fields.
    """
    cdef bint is_symbol
    fault.depth = -1
    code[0] = 0
    at = _scan_head(scan, at, code, &is_symbol)
    if at is NULL:
        return NULL
    if is_symbol:
        return blame(scan, SYMBOLIC_TYPE, 0, 0)
    if code[0] > 255 or rule_of_code[code[0]] == NONE:
        return blame(scan, UNKNOWN_TYPE, code[0], 0)
    return _scan_fields(scan, at, rule_of_code[code[0]], fields, fault, 0)


cdef bint read_first_fields(
    Scan *scan, const unsigned char *at, unsigned long long *code, Fields *fields, int most
) noexcept:
    """Find the first ``most`` fields of the described list at ``at``, which this node wrote itself.

    The rules of the table are not checked. ``code`` gets the descriptor, ``fields`` the places of the fields, NULL for
    a field that is null or missing. Return False for bytes that are cut, that are no list with a number as descriptor,
    or that have a malformed value among these fields.
    """
    cdef bint is_symbol
    cdef unsigned long long count = 0
    cdef size_t size = 0
    cdef int place
    code[0] = 0
    memset(fields, 0, sizeof(Fields))
    at = _scan_head(scan, at, code, &is_symbol)
    if at is NULL or is_symbol or _scan_list(scan, at, &at, &count, &size) is NULL:
        return False
    for place in range(most):
        if <unsigned long long>place >= count:
            break
        if at >= scan.end:
            return False
        if at[0] != AS_NULL:
            fields.at[place] = at
        at = scan_value(scan, at, 1)
        if at is NULL:
            return False
    return True


cdef const unsigned char *_scan_head(
    Scan *scan, const unsigned char *at, unsigned long long *code, bint *is_symbol
) noexcept:
    is_symbol[0] = False
    if at >= scan.end:
        return blame(scan, CUT, 1, 0)
    if at[0] != AS_DESCRIBED:
        return blame(scan, NOT_DESCRIBED, at[0], 0)
    return scan_descriptor(scan, at + 1, code, is_symbol)


cdef const unsigned char *_scan_fields(
    Scan *scan, const unsigned char *at, int index, Fields *fields, Fault *fault, unsigned int depth
) noexcept:
    """Scan the list at ``at`` as the fields of the composite type with rule ``index``; ``fields`` gets their places.

    Return the end of the list, or NULL with a finding: each field has to keep its rule, and the values have to fill the
    list exactly.
    """
    cdef CompositeRule *rule = &rules[index]
    cdef const unsigned char *outer_end = scan.end
    cdef const unsigned char *goal
    cdef unsigned long long count = 0
    cdef size_t size = 0
    cdef int place
    fault.depth, fault.composite[depth], fault.field[depth] = depth, index, -1
    memset(fields, 0, sizeof(Fields))
    goal = _scan_list(scan, at, &at, &count, &size)
    if goal is NULL:
        return NULL
    if count > <unsigned long long>rule.count:
        return blame(scan, TOO_MANY_FIELDS, count, rule.count)
    scan.end = goal
    for place in range(rule.count):
        fault.depth, fault.field[depth] = depth, place
        if <unsigned long long>place < count:
            if at >= scan.end:
                return blame(scan, CUT, 1, 0)
            if at[0] != AS_NULL:
                fields.at[place] = at
                at = _scan_field(scan, at, index, place, fault, depth)
                if at is NULL:
                    return NULL
                continue
            at += 1
        if rule.fields[place].is_mandatory:
            return blame(scan, MISSING_FIELD, 0, 0)
    fault.field[depth] = -1
    if at != scan.end:
        return blame(scan, WRONG_SIZE, size, size - (scan.end - at))
    scan.end = outer_end
    return at


cdef const unsigned char *_scan_list(
    Scan *scan, const unsigned char *at, const unsigned char **first, unsigned long long *count, size_t *size
) noexcept:
    """Return the end of the list at ``at``, as its size says, or NULL with a finding.

    ``first`` gets the place of the list's first value, ``count`` the number of its values, ``size`` its size. For list0,
    the empty list, only ``first`` is set.
    """
    cdef size_t width, there
    if at >= scan.end:
        return blame(scan, CUT, 1, 0)
    there = scan.end - at - 1
    if at[0] == AS_LIST0:
        first[0] = at + 1
        return at + 1
    if at[0] == AS_LIST8:
        width = 1
    elif at[0] == AS_LIST32:
        width = 4
    else:
        return blame(scan, NOT_A_LIST, at[0], 0)
    if there < 2 * width:
        return blame(scan, CUT, 2 * width - there, 0)
    size[0] = big_endian(at + 1, width)
    if size[0] < width:
        return blame(scan, WRONG_SIZE, size[0], width)
    if size[0] > there - width:
        return blame(scan, CUT, size[0] - (there - width), 0)
    count[0] = big_endian(at + 1 + width, width)
    first[0] = at + 1 + 2 * width
    return at + 1 + width + size[0]


cdef const unsigned char *_scan_field(
    Scan *scan, const unsigned char *at, int index, int place, Fault *fault, unsigned int depth
) noexcept:
    cdef FieldRule *rule = &rules[index].fields[place]
    cdef const unsigned char *after
    cdef size_t size
    if not accepts[rule.type][at[0]]:
        return blame(scan, WRONG_TYPE, at[0], 0)
    if is_nested[rule.type]:
        return _scan_nested(scan, at, rule.type, fault, depth)
    after = scan_value(scan, at, 1)
    if after is NULL:
        return NULL
    if rule.is_bounded:
        if at[0] >= 0xA0:
            bytes_at(at, &size)
            if size > rule.most:
                return blame(scan, TOO_LONG, size, rule.most)
        elif number_at(at) > rule.most:
            return blame(scan, TOO_LARGE, number_at(at), rule.most)
    if rule.type == HOLDS_SYMBOLS and at[0] >= 0xC0:
        return after if _holds_symbols(scan, at) else NULL
    if rule.type == KEYS_ARE_SYMBOLS or rule.type == KEYS_ARE_ANNOTATIONS:
        return after if _has_names(scan, at, rule.type == KEYS_ARE_ANNOTATIONS) else NULL
    return after


cdef const unsigned char *_scan_nested(
    Scan *scan, const unsigned char *at, unsigned char kind, Fault *fault, unsigned int depth
) noexcept:
    cdef Fields fields
    cdef unsigned long long code = 0
    cdef bint is_symbol
    cdef int choice
    at = _scan_head(scan, at, &code, &is_symbol)
    if at is NULL:
        return NULL
    if is_symbol:
        return blame(scan, SYMBOLIC_TYPE, 0, 0)
    for choice in range(MOST_NESTED):
        if nested[kind][choice] == code and code != NONE:
            break
    else:
        return blame(scan, UNKNOWN_TYPE, code, 0)
    return _scan_fields(scan, at, rule_of_code[code], &fields, fault, depth + 1)


cdef inline bint _is_name(unsigned char code) noexcept:
    return code == AS_SYMBOL8 or code == AS_SYMBOL32 or code == AS_STRING8 or code == AS_STRING32


cdef bint _holds_symbols(Scan *scan, const unsigned char *at) noexcept:
    """Say whether the values of the array or list at ``at``, which was scanned before, are symbols or strings.

    If not, the finding in ``scan`` names the wrong constructor.
    """
    cdef size_t width = 1 if at[0] < 0xD0 or at[0] == AS_ARRAY8 else 4
    cdef const unsigned char *item = at + 1 + 2 * width
    cdef unsigned long long count = big_endian(at + 1 + width, width), _index
    cdef size_t size
    if at[0] == AS_ARRAY8 or at[0] == AS_ARRAY32:
        if count and not _is_name(item[0]):
            blame(scan, WRONG_TYPE, item[0], 0)
            return False
        return True
    for _index in range(count):
        if not _is_name(item[0]):
            blame(scan, WRONG_TYPE, item[0], 0)
            return False
        item = bytes_at(item, &size)
        item += size
    return True


cdef bint _has_names(Scan *scan, const unsigned char *at, bint may_be_numbers) noexcept:
    """Say whether the keys of the map at ``at``, which was scanned before, are symbols or strings.

    With ``may_be_numbers`` keys may also be ulongs. If a key is anything else, ``scan`` gets the finding.
    """
    cdef size_t width = 1 if at[0] == AS_MAP8 else 4
    cdef const unsigned char *item = at + 1 + 2 * width
    cdef unsigned long long count = big_endian(at + 1 + width, width), index
    cdef unsigned char code
    for index in range(count):
        code = item[0]
        if not index & 1 and not _is_name(code) and not (may_be_numbers and accepts[ULONGS][code]):
            blame(scan, WRONG_TYPE, code, 0)
            return False
        scan.left += 1  # this value was counted against MAX_VALUES by an earlier scan: do not count it twice
        item = scan_value(scan, item, 1)
        if item is NULL:
            return False
    return True


cdef object fault_in(const Scan *scan, const Fault *fault):
    """Return an exception for a failed scan, with the names of performative and field, and the finding as a text."""
    cdef int level
    names = []
    for level in range(fault.depth + 1):
        composite = table.COMPOSITES[fault.composite[level]]
        if level == 0:
            names.append(composite.name)
        if fault.field[level] >= 0:
            names.append(composite.fields[fault.field[level]].name)
    return CodecFault(".".join(names), sentence_of(scan), is_invalid_field=is_invalid_field(scan.finding))


def check(const unsigned char[:] body not None):
    """Return (descriptor code, offset of the end) of the performative in a frame's body.

    Raises CodecFault for a performative that is malformed or breaks the table's rules.
    """
    cdef Scan scan
    cdef Fields fields
    cdef Fault fault
    cdef unsigned long long code
    cdef const unsigned char *first = &body[0] if body.shape[0] else NULL
    cdef const unsigned char *at
    begin_scan(&scan, first + body.shape[0])
    at = scan_performative(&scan, first, &code, &fields, &fault)
    if at is NULL:
        raise fault_in(&scan, &fault)
    return code, at - first
