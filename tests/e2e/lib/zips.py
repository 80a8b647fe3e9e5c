"""Zip files as Inspect writes its logs, and such as it never would: by method, by ZIP64, with numbers that are not true."""

import struct
import zlib

STORED, DEFLATED, ZSTD = 0, 8, 93


def zstd_frame(data):
    """Without compression: blocks of bytes as they are."""
    blocks = [data[i:i + (1 << 17)] for i in range(0, len(data), 1 << 17)] or [b""]
    head = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    return head + b"".join(struct.pack("<I", (b is blocks[-1]) | len(b) << 3)[:3] + b for b in blocks)


def zstd_bomb(size):
    """A frame of zeros: four bytes for each 128 KiB."""
    n = size >> 17
    return b"\x28\xb5\x2f\xfd\x00\x38" + b"".join(struct.pack("<I", (i + 1 == n) | 2 | (1 << 17) << 3)[:3] + b"\0" for i in range(n))


def squeeze(data, method):
    if method == DEFLATED:
        c = zlib.compressobj(5, zlib.DEFLATED, -15)
        return c.compress(data) + c.flush()
    return zstd_frame(data) if method == ZSTD else data


def pack(entries, zip64=False, comment=b""):
    """Of (name, bytes, method) and perhaps what is there or stated instead: packed, stated, size, crc, flags, offset."""
    out, directory = b"", b""
    for name, data, method, *lies in entries:
        lie = lies[0] if lies else {}
        packed = lie.get("packed", squeeze(data, method))
        size, crc, offset = lie.get("size", len(data)), lie.get("crc", zlib.crc32(data)), lie.get("offset", len(out))
        flags, stated, text = lie.get("flags", 0), lie.get("stated", len(packed)), name.encode()
        out += struct.pack("<4s5H3I2H", b"PK\3\4", 20, flags, method, 0, 33, crc, stated, size & 0xffffffff, len(text), 4)
        out += text + struct.pack("<2H", 0x9999, 0) + packed  # an extra field that the directory lacks
        wide = zip64 or size > 0xfffffffe
        extra = struct.pack("<2H3Q", 1, 24, size, stated, offset) if wide else b""
        sizes = (0xffffffff, 0xffffffff) if wide else (stated, size)
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, flags, method, 0, 33, crc, *sizes, len(text), len(extra), 0, 0, 0, 0,
                                 0xffffffff if wide else offset) + text + extra
    n, at = len(entries), len(out)
    end = b""
    if zip64:
        end = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, n, n, len(directory), at)
        end += struct.pack("<4sIQI", b"PK\6\7", 0, at + len(directory), 1)
        n, at = 0xffff, 0xffffffff
    return out + directory + end + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(directory), at, len(comment)) + comment
