// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The bytes of GGUF files for tests, right or wrong.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/gguf_header.h"

namespace vitrine::engine::test {

class GgufBytes {
public:
    explicit GgufBytes(std::uint32_t version = 3) : version_(version) {}

    template <class T> static std::string raw(T value) {
        std::string out(sizeof value, '\0');
        std::memcpy(out.data(), &value, sizeof value);
        return out;
    }
    static std::string text(std::string_view value) {
        return raw(static_cast<std::uint64_t>(value.size())) + std::string(value);
    }

    /// `bytes`: the value as it lies in a file.
    GgufBytes& value(std::string_view key, GgufValueType type, const std::string& bytes) {
        values_ += text(key) + raw(static_cast<std::uint32_t>(type)) + bytes;
        ++valueCount_;
        return *this;
    }
    GgufBytes& integer(std::string_view key, std::uint32_t number) {
        return value(key, GgufValueType::U32, raw(number));
    }
    GgufBytes& words(std::string_view key, std::string_view word) {
        return value(key, GgufValueType::Text, text(word));
    }

    /// A metadatum as another file has it.
    GgufBytes& copy(const GgufValue& from) {
        std::string bytes(from.data, from.bytes);
        if (from.array) {
            bytes = raw(static_cast<std::uint32_t>(from.type)) + raw(std::uint64_t{from.count}) + bytes;
        }
        return value(from.key, from.array ? GgufValueType::Array : from.type, bytes);
    }

    GgufBytes& tensor(std::string_view name, std::uint32_t type, const std::vector<std::int64_t>& shape,
                      const std::string& bytes) {
        return tensorAt(name, type, shape, data_.size(), bytes);
    }
    GgufBytes& tensorAt(std::string_view name, std::uint32_t type, const std::vector<std::int64_t>& shape,
                        std::uint64_t offset, const std::string& bytes) {
        tensors_ += text(name) + raw(static_cast<std::uint32_t>(shape.size()));
        for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) {
            tensors_ += raw(static_cast<std::uint64_t>(*dim));
        }
        tensors_ += raw(type) + raw(offset);
        ++tensorCount_;
        data_ += bytes;
        pad(data_);
        return *this;
    }

    std::string bytes() const {
        std::string out = "GGUF" + raw(version_) + raw(tensorCount_) + raw(valueCount_) + values_ + tensors_;
        pad(out);
        return out + data_;
    }

private:
    static void pad(std::string& bytes) { bytes.resize((bytes.size() + 31) / 32 * 32, '\0'); }

    std::uint32_t version_;
    std::uint64_t tensorCount_ = 0, valueCount_ = 0;
    std::string values_, tensors_, data_;
};

} // namespace vitrine::engine::test
