// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any bytes are a chunk or BadInput. The checksum would stop nearly all of them, so it is made right first; a chunk's
// columns are then read as what they say they are.

#include "base/column_chunk.h"

#include <cstdint>

#include "base/codec.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine::base;
    const auto* const begin = reinterpret_cast<const std::byte*>(data);
    std::vector<std::byte> bytes(begin, begin + size);
    const std::uint64_t sum = checksum64(bytes);
    for (unsigned i = 0; i < 8; ++i) {
        bytes.push_back(static_cast<std::byte>(sum >> (8 * i)));
    }
    try {
        const ColumnChunk chunk = fromBytes(bytes);
        for (const Column& column : chunk.columns) {
            try {
                switch (column.type) {
                case ColumnType::Int64:
                    decodeInt64(column, chunk.rows);
                    break;
                case ColumnType::UInt64:
                    decodeUInt64(column, chunk.rows);
                    break;
                case ColumnType::Float64:
                    decodeFloat64(column, chunk.rows);
                    break;
                case ColumnType::Text:
                    decodeText(column, chunk.rows);
                    break;
                }
            } catch (const BadInput&) {
                continue; // the other columns may be whole
            }
        }
    } catch (const BadInput&) {
        return 0;
    }
    return 0;
}
