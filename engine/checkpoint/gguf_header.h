// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// GGUF, the file format of llama.cpp, versions 2 and 3, little-endian:
//
//     "GGUF", version (U32), number of tensors (U64), number of metadata (U64)
//     each metadatum: key (string), type (U32), value          string: bytes (U64), UTF-8 without an end mark
//     each tensor: name (string), number of axes (U32), axes (U64 each, the innermost first), type (U32), offset (U64)
//     zeros up to a multiple of the alignment, then the tensors, each at a multiple of it
//
// The value of an array is the type of its elements (U32), their number (U64) and the elements.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/quant/gguf.h"

namespace vitrine::engine {

inline constexpr std::string_view kGgufMagic = "GGUF"; ///< the first bytes of a file

/// The numbers are those of the file.
enum class GgufValueType : std::uint8_t { U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64 };

/// A metadatum. It points into the header's bytes, so that a header of many small ones stays small.
struct GgufValue {
    std::string_view key;
    const char* data = nullptr; ///< all elements, as they lie in the file
    std::uint32_t bytes = 0;
    std::uint32_t count = 1;                ///< of elements
    GgufValueType type = GgufValueType::U8; ///< of an array: that of its elements
    bool array = false;
};

struct GgufTensor {
    static constexpr std::size_t kMostAxes = 4;

    std::string_view name;
    const GgufType* type = nullptr;
    std::array<std::int64_t, kMostAxes> dims{}; ///< the outermost axis first
    std::uint32_t axes = 0;
    std::uint64_t offset = 0; ///< in its file
    std::uint64_t bytes = 0;
    std::uint32_t part = 0; ///< the number of its file, where a model is cut into several

    std::span<const std::int64_t> shape() const { return {dims.data(), axes}; }
};

/// The number at `data`, as the file has it.
template <class T> T ggufNumber(const char* data) {
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

/// A header that was read and checked. Immutable; views stay right while it lives.
class GgufHeader {
public:
    /// Reads a header from the first bytes of a file of `fileBytes` bytes. Nothing when the header goes on after
    /// `bytes`. Throws BadInput "FILE: FIELD: what", and Unsupported for other versions and byte orders. The
    /// header takes at most four times the memory of `bytes`.
    static std::optional<GgufHeader> parse(std::string bytes, std::uint64_t fileBytes, const std::string& file);

    const std::string& file() const { return file_; }
    const std::vector<GgufValue>& values() const { return values_; }
    const std::vector<GgufTensor>& tensors() const { return tensors_; } ///< by name

    /// Null when there is none.
    const GgufValue* find(std::string_view key) const;
    const GgufTensor* tensor(std::string_view name) const;

    /// Values of a key; nothing when it is missing. Throw BadInput for another type. An integer may be of any integer
    /// type, and a number of any type of numbers. Float32 becomes the shortest decimal number that means it.
    std::optional<std::int64_t> integer(std::string_view key) const;
    std::optional<double> number(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> text(std::string_view key) const;
    /// The elements of arrays; empty when the key is missing. Integers are of 32 bits, and one alone is a list of one.
    std::vector<std::string_view> texts(std::string_view key) const;
    std::vector<std::int32_t> integers(std::string_view key) const;
    std::vector<float> floats(std::string_view key) const;

    /// Adds the tensors of part number `number` of the same model. Throws BadInput when one of them is there already.
    void join(GgufHeader part, std::uint32_t number);

    [[noreturn]] void bad(std::string_view field, std::string_view what) const;
    [[noreturn]] void unsupported(std::string_view field, std::string_view what) const;

private:
    friend class GgufParser;
    GgufHeader() = default;

    std::shared_ptr<const std::string> bytes_; ///< shared, so that views survive a move
    std::string file_;
    std::vector<GgufValue> values_; ///< by key
    std::vector<GgufTensor> tensors_;
    std::vector<std::shared_ptr<const std::string>> joined_; ///< bytes of the headers that were added
};

} // namespace vitrine::engine
