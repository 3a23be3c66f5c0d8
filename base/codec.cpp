// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/codec.h"

#include <cstring>
#include <memory>
#include <zstd.h>

#include "base/error.h"

namespace vitrine::base {

namespace {

struct FreeCompressor {
    void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
    void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

// Setting up a context costs more than compressing a small column, so every thread keeps its own.
ZSTD_CCtx* compressor() {
    static thread_local std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
    return context.get();
}

ZSTD_DCtx* decompressor() {
    static thread_local std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
    return context.get();
}

constexpr unsigned char kFrameMagic[4] = {0x28, 0xB5, 0x2F, 0xFD};
constexpr std::size_t kMaxBlock = std::size_t{128} << 10; // RFC 8878: a block holds at most 128 KiB ...
constexpr std::size_t kMinBlock = 4;                      // ... and takes a 3-byte header and at least one byte

} // namespace

std::vector<std::byte> compress(std::span<const std::byte> bytes, int level) {
    std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
    ZSTD_CCtx* const context = compressor();
    if (context == nullptr) {
        throw Internal("zstd: no memory for a compressor");
    }
    const std::size_t size = ZSTD_compressCCtx(context, out.data(), out.size(), bytes.data(), bytes.size(), level);
    if (ZSTD_isError(size) != 0) {
        throw Internal(std::string("zstd: ") + ZSTD_getErrorName(size));
    }
    out.resize(size);
    return out;
}

std::vector<std::byte> decompress(std::span<const std::byte> bytes, std::size_t maxBytes) {
    if (bytes.size() < sizeof kFrameMagic || std::memcmp(bytes.data(), kFrameMagic, sizeof kFrameMagic) != 0) {
        throw BadInput("compressed data: no zstd frame; the file is damaged");
    }
    const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
        throw BadInput("compressed data: the frame does not say its size; the file is damaged");
    }
    // The second test refuses sizes that so few bytes cannot hold, before anything is allocated.
    if (size > maxBytes || size / kMaxBlock > bytes.size() / kMinBlock) {
        throw BadInput("compressed data: larger than it may be; the file is damaged");
    }
    const std::size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
    if (ZSTD_isError(frame) != 0 || frame != bytes.size()) {
        throw BadInput("compressed data: not exactly one zstd frame; the file is damaged");
    }
    ZSTD_DCtx* const context = decompressor();
    if (context == nullptr) {
        throw Internal("zstd: no memory for a decompressor");
    }
    std::vector<std::byte> out(static_cast<std::size_t>(size));
    const std::size_t written = ZSTD_decompressDCtx(context, out.data(), out.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(written) != 0 || written != out.size()) {
        throw BadInput("compressed data: the zstd frame is damaged");
    }
    return out;
}

std::uint64_t checksum64(std::span<const std::byte> bytes) {
    constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u; // 2^64 / golden ratio, odd: the product loses nothing
    std::uint64_t hash = bytes.size() * kMultiplier;
    std::size_t at = 0;
    const auto mix = [&hash](std::uint64_t word) {
        hash = (hash ^ word) * kMultiplier;
        hash ^= hash >> 29;
    };
    for (; at + 8 <= bytes.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, 8);
        mix(word);
    }
    std::uint64_t tail = 0;
    if (at < bytes.size()) {
        std::memcpy(&tail, bytes.data() + at, bytes.size() - at);
    }
    mix(tail);
    return hash ^ (hash >> 32);
}

} // namespace vitrine::base
