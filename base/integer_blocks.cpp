// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/integer_blocks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace vitrine::base {

namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kMaxBlockHeader = 1 + kMaxVarintBytes;
constexpr std::uint8_t kValuesForm = 8;
constexpr std::uint8_t kWidthMask = 7;
constexpr std::array<std::uint8_t, 5> kWidths = {0, 1, 2, 4, 8};

std::uint8_t widthCode(std::uint64_t range) {
    if (range == 0) {
        return 0;
    }
    if (range <= 0xFF) {
        return 1;
    }
    if (range <= 0xFFFF) {
        return 2;
    }
    return range <= 0xFFFFFFFF ? 3 : 4;
}

struct Range {
    std::int64_t low = 0;
    std::uint64_t size = 0; ///< highest minus lowest
};

Range rangeOf(const std::uint64_t* values, std::size_t count) {
    std::int64_t low = static_cast<std::int64_t>(values[0]);
    std::int64_t high = low;
    for (std::size_t i = 1; i < count; ++i) {
        const auto value = static_cast<std::int64_t>(values[i]);
        low = std::min(low, value);
        high = std::max(high, value);
    }
    return {low, static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low)};
}

template <typename Packed>
void packValues(std::byte* out, const std::uint64_t* values, std::size_t count, std::uint64_t base) {
    std::array<Packed, kBlock> packed;
    for (std::size_t i = 0; i < count; ++i) {
        packed[i] = static_cast<Packed>(values[i] - base);
    }
    std::memcpy(out, packed.data(), count * sizeof(Packed));
}

template <typename Packed>
void unpackValues(const std::byte* in, std::uint64_t* values, std::size_t count, std::uint64_t base) {
    std::array<Packed, kBlock> packed;
    std::memcpy(packed.data(), in, count * sizeof(Packed));
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = base + packed[i];
    }
}

} // namespace

void putIntegers(ByteWriter& out, std::span<const std::uint64_t> values) {
    if (values.empty()) {
        return;
    }
    std::array<std::uint64_t, kBlock> deltas;
    std::uint64_t before = values.front();
    out.putSigned(static_cast<std::int64_t>(before));
    for (std::size_t at = 0; at < values.size(); at += kBlock) {
        const std::size_t count = std::min(kBlock, values.size() - at);
        const std::uint64_t* const block = values.data() + at;
        deltas[0] = block[0] - before;
        for (std::size_t i = 1; i < count; ++i) {
            deltas[i] = block[i] - block[i - 1];
        }
        before = block[count - 1];
        const Range valueRange = rangeOf(block, count);
        const Range deltaRange = rangeOf(deltas.data(), count);
        const std::uint8_t valueCode = widthCode(valueRange.size);
        const std::uint8_t deltaCode = widthCode(deltaRange.size);
        const bool asValues = valueCode <= deltaCode;
        const std::uint64_t* const source = asValues ? block : deltas.data();
        const Range range = asValues ? valueRange : deltaRange;
        const std::uint8_t code = asValues ? valueCode : deltaCode;
        const auto base = static_cast<std::uint64_t>(range.low);
        out.putByte(static_cast<std::uint8_t>(asValues ? code | kValuesForm : code));
        out.putSigned(range.low);
        std::byte* const packed = out.grow(count * kWidths[code]);
        switch (code) {
        case 1:
            packValues<std::uint8_t>(packed, source, count, base);
            break;
        case 2:
            packValues<std::uint16_t>(packed, source, count, base);
            break;
        case 3:
            packValues<std::uint32_t>(packed, source, count, base);
            break;
        case 4:
            packValues<std::uint64_t>(packed, source, count, base);
            break;
        default:
            break;
        }
    }
}

void takeIntegers(ByteReader& in, std::span<std::uint64_t> values) {
    std::uint64_t before = values.empty() ? 0 : static_cast<std::uint64_t>(in.takeSigned());
    for (std::size_t at = 0; at < values.size(); at += kBlock) {
        const std::size_t count = std::min(kBlock, values.size() - at);
        std::uint64_t* const block = values.data() + at;
        const std::uint8_t form = in.takeByte();
        const std::size_t code = form & kWidthMask;
        if (code >= kWidths.size() || form >= 2 * kValuesForm) {
            throw in.damaged("unknown form of a block");
        }
        const auto base = static_cast<std::uint64_t>(in.takeSigned());
        const std::span<const std::byte> packed = in.take(count * kWidths[code]);
        switch (code) {
        case 0:
            std::fill_n(block, count, base);
            break;
        case 1:
            unpackValues<std::uint8_t>(packed.data(), block, count, base);
            break;
        case 2:
            unpackValues<std::uint16_t>(packed.data(), block, count, base);
            break;
        case 3:
            unpackValues<std::uint32_t>(packed.data(), block, count, base);
            break;
        default:
            unpackValues<std::uint64_t>(packed.data(), block, count, base);
            break;
        }
        if ((form & kValuesForm) == 0) {
            for (std::size_t i = 0; i < count; ++i) {
                before += block[i];
                block[i] = before;
            }
        }
        before = block[count - 1];
    }
}

std::size_t maxIntegerBytes(std::uint64_t rows) {
    return kMaxVarintBytes + rows * 8 + (rows / kBlock + 1) * kMaxBlockHeader;
}

} // namespace vitrine::base
