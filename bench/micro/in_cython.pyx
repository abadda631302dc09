# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernels in Cython: typed loops over buffers, compiled as C."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from micro import pure_python

cdef uint32_t TABLES[8][256]
cdef Py_ssize_t HEADER_BYTES = pure_python.HEADER.size
cdef Py_ssize_t LONGEST = 10


cdef void fill_tables():
    cdef uint32_t crc
    cdef int byte, bit, table
    for byte in range(256):
        crc = byte
        for bit in range(8):
            crc = (crc >> 1) ^ 0x82F63B78u if crc & 1 else crc >> 1
        TABLES[0][byte] = crc
    for table in range(1, 8):
        for byte in range(256):
            crc = TABLES[table - 1][byte]
            TABLES[table][byte] = (crc >> 8) ^ TABLES[0][crc & 0xFF]


fill_tables()


cdef inline uint64_t coded(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline Py_ssize_t put(uint8_t *out, int64_t value) noexcept nogil:
    cdef uint64_t rest = coded(value)
    cdef Py_ssize_t at = 0
    while rest >= 0x80:
        out[at] = <uint8_t>(rest & 0x7F) | 0x80
        rest >>= 7
        at += 1
    out[at] = <uint8_t>rest
    return at + 1


cdef inline Py_ssize_t get(const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int64_t *value) noexcept nogil:
    """Where the varint at `at` ends; -1 when it is cut."""
    cdef uint64_t bits = 0
    cdef int shift = 0
    while 0 <= at < end and shift < 70:
        bits |= <uint64_t>(data[at] & 0x7F) << shift
        if data[at] < 0x80:
            value[0] = <int64_t>(bits >> 1) ^ -<int64_t>(bits & 1)
            return at + 1
        shift += 7
        at += 1
    return -1


def zigzag(const int64_t[::1] values):
    cdef Py_ssize_t index, count = values.shape[0]
    cdef bytearray out = bytearray(count * 8)
    cdef uint64_t *target = <uint64_t *>PyByteArray_AS_STRING(out)
    for index in range(count):
        target[index] = coded(values[index])
    return bytes(out)


def encode_varints(const int64_t[::1] values):
    cdef Py_ssize_t index, at = 0, count = values.shape[0]
    cdef bytearray out = bytearray(count * LONGEST)
    cdef uint8_t *target = <uint8_t *>PyByteArray_AS_STRING(out)
    for index in range(count):
        at += put(target + at, values[index])
    return PyByteArray_AS_STRING(out)[:at]


def decode_varints(const uint8_t[::1] data):
    cdef Py_ssize_t at = 0, count = 0, end = data.shape[0]
    cdef bytearray out = bytearray(end * 8)
    cdef int64_t *target = <int64_t *>PyByteArray_AS_STRING(out)
    while at < end:
        at = get(&data[0], at, end, target + count)
        if at < 0:
            raise ValueError("a varint is cut")
        count += 1
    return PyByteArray_AS_STRING(out)[: count * 8]


cdef uint32_t checksum(const uint8_t *data, Py_ssize_t count) noexcept nogil:
    """Eight bytes a step by eight tables."""
    cdef uint32_t crc = 0xFFFFFFFFu
    cdef uint64_t word
    while count >= 8:
        memcpy(&word, data, 8)
        word ^= crc
        crc = (
            TABLES[7][word & 0xFF] ^ TABLES[6][(word >> 8) & 0xFF] ^ TABLES[5][(word >> 16) & 0xFF]
            ^ TABLES[4][(word >> 24) & 0xFF] ^ TABLES[3][(word >> 32) & 0xFF] ^ TABLES[2][(word >> 40) & 0xFF]
            ^ TABLES[1][(word >> 48) & 0xFF] ^ TABLES[0][word >> 56]
        )
        data += 8
        count -= 8
    while count > 0:
        crc = TABLES[0][(crc ^ data[0]) & 0xFF] ^ (crc >> 8)
        data += 1
        count -= 1
    return crc ^ 0xFFFFFFFFu


def crc32c(const uint8_t[::1] data):
    return checksum(&data[0], data.shape[0]) if data.shape[0] else 0


def build_batch(list values, int64_t timestamp_ms):
    cdef Py_ssize_t size, at = HEADER_BYTES, room = HEADER_BYTES
    cdef int64_t delta
    cdef bytes value
    cdef uint8_t length[10]
    cdef uint8_t place[10]
    cdef Py_ssize_t length_bytes, place_bytes
    for value in values:
        room += len(value) + 2 * LONGEST + 8
    cdef bytearray out = bytearray(room)
    cdef uint8_t *target = <uint8_t *>PyByteArray_AS_STRING(out)
    delta = 0
    for value in values:
        size = len(value)
        place_bytes = put(place, delta)
        length_bytes = put(length, size)
        at += put(target + at, 4 + place_bytes + length_bytes + size)
        target[at] = 0
        target[at + 1] = 0
        memcpy(target + at + 2, place, place_bytes)
        at += 2 + place_bytes
        target[at] = 1
        memcpy(target + at + 1, length, length_bytes)
        at += 1 + length_bytes
        memcpy(target + at, <const char *>value, size)
        at += size
        target[at] = 0
        at += 1
        delta += 1
    PyByteArray_Resize(out, at)
    target = <uint8_t *>PyByteArray_AS_STRING(out)
    pure_python.HEADER.pack_into(
        out, 0, 0, at - 12, -1, 2, 0, 0, delta - 1, timestamp_ms, timestamp_ms, -1, -1, -1, delta
    )
    cdef uint32_t crc = checksum(target + 21, at - 21)
    out[17:21] = crc.to_bytes(4, "big")
    return bytes(out)


cdef Py_ssize_t skip(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Where the nullable bytes at `at` end; -1 when they are cut."""
    cdef int64_t size = 0
    at = get(data, at, end, &size)
    if at < 0 or size < -1 or size > end - at:
        return -1
    return at + size if size > 0 else at


cdef Py_ssize_t walk(const uint8_t *data, Py_ssize_t at, Py_ssize_t end, int32_t count) noexcept nogil:
    """Where the last record ends; -1 when one is wrong."""
    cdef int64_t size = 0, number = 0, headers = 0
    cdef Py_ssize_t bound
    cdef int32_t index
    for index in range(count):
        at = get(data, at, end, &size)
        if at < 0 or size < 0 or size > end - at:
            return -1
        bound = at + size
        at = get(data, at + 1, bound, &number)
        at = get(data, at, bound, &number)
        if at < 0 or number != index:
            return -1
        at = skip(data, at, bound)
        at = skip(data, at, bound)
        at = get(data, at, bound, &headers)
        if at < 0 or headers < 0:
            return -1
        while headers > 0 and at >= 0:
            at = skip(data, skip(data, at, bound), bound)
            headers -= 1
        if at != bound:
            return -1
    return at


def validate_batch(const uint8_t[::1] batch):
    crc, count = pure_python.check_header(batch)
    cdef const uint8_t *data = &batch[0]
    cdef Py_ssize_t end = batch.shape[0]
    if checksum(data + 21, end - 21) != crc:
        raise ValueError("the checksum is wrong")
    if walk(data, HEADER_BYTES, end, count) != end:
        raise ValueError("a record is wrong")
    return count


cdef inline uint32_t word(const uint8_t *data) noexcept nogil:
    return (<uint32_t>data[0] << 24) | (<uint32_t>data[1] << 16) | (<uint32_t>data[2] << 8) | data[3]


def search_index(const uint8_t[::1] entries, uint32_t relative_offset):
    cdef Py_ssize_t low = 0, middle, high = entries.shape[0] // 8
    if high == 0:
        return 0
    cdef const uint8_t *data = &entries[0]
    while low < high:
        middle = (low + high) // 2
        if word(data + middle * 8) <= relative_offset:
            low = middle + 1
        else:
            high = middle
    return word(data + low * 8 - 4) if low else 0
