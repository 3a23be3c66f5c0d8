// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_header.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "base/error.h"
#include "base/quoted_text.h"

namespace vitrine::engine {
namespace {

/// An integer of any type; nothing for what is none or does not fit.
std::optional<std::int64_t> integerAt(GgufValueType type, const char* data) {
    switch (type) {
    case GgufValueType::U8:
        return ggufNumber<std::uint8_t>(data);
    case GgufValueType::I8:
        return ggufNumber<std::int8_t>(data);
    case GgufValueType::U16:
        return ggufNumber<std::uint16_t>(data);
    case GgufValueType::I16:
        return ggufNumber<std::int16_t>(data);
    case GgufValueType::U32:
        return ggufNumber<std::uint32_t>(data);
    case GgufValueType::I32:
        return ggufNumber<std::int32_t>(data);
    case GgufValueType::I64:
        return ggufNumber<std::int64_t>(data);
    case GgufValueType::U64: {
        const auto value = ggufNumber<std::uint64_t>(data);
        return value > INT64_MAX ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
    }
    default:
        return std::nullopt;
    }
}

/// The shortest decimal number that is this float32: 1e-05 and not 9.99999974737875e-06.
double decimalOf(float value) {
    if (!std::isfinite(value)) {
        return static_cast<double>(value);
    }
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
    double out = 0;
    std::from_chars(text.data(), end.ptr, out);
    return out;
}

} // namespace

const GgufValue* GgufHeader::find(std::string_view key) const {
    const auto found = std::ranges::lower_bound(values_, key, {}, &GgufValue::key);
    return found == values_.end() || found->key != key ? nullptr : &*found;
}

const GgufTensor* GgufHeader::tensor(std::string_view name) const {
    const auto found = std::ranges::lower_bound(tensors_, name, {}, &GgufTensor::name);
    return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

std::optional<std::int64_t> GgufHeader::integer(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    const auto out = value->array ? std::nullopt : integerAt(value->type, value->data);
    if (!out) {
        bad(key, "must be an integer");
    }
    return out;
}

std::optional<double> GgufHeader::number(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    double out = NAN;
    if (!value->array && value->type == GgufValueType::F32) {
        out = decimalOf(ggufNumber<float>(value->data));
    } else if (!value->array && value->type == GgufValueType::F64) {
        out = ggufNumber<double>(value->data);
    } else if (const auto integer = value->array ? std::nullopt : integerAt(value->type, value->data)) {
        out = static_cast<double>(*integer);
    }
    if (!std::isfinite(out)) {
        bad(key, "must be a number");
    }
    return out;
}

std::optional<bool> GgufHeader::boolean(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->array || value->type != GgufValueType::Bool || static_cast<unsigned char>(value->data[0]) > 1) {
        bad(key, "must be true or false");
    }
    return value->data[0] != 0;
}

std::optional<std::string_view> GgufHeader::text(std::string_view key) const {
    const GgufValue* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (value->array || value->type != GgufValueType::Text) {
        bad(key, "must be a text");
    }
    return std::string_view(value->data, value->bytes).substr(sizeof(std::uint64_t));
}

std::vector<std::string_view> GgufHeader::texts(std::string_view key) const {
    std::vector<std::string_view> out;
    if (const GgufValue* value = find(key)) {
        if (!value->array || value->type != GgufValueType::Text) {
            bad(key, "must be a list of texts");
        }
        out.reserve(value->count);
        const char* at = value->data;
        for (std::uint32_t i = 0; i < value->count; ++i) {
            out.emplace_back(at + sizeof(std::uint64_t), ggufNumber<std::uint64_t>(at));
            at = out.back().data() + out.back().size();
        }
    }
    return out;
}

std::vector<std::int32_t> GgufHeader::integers(std::string_view key) const {
    std::vector<std::int32_t> out;
    if (const GgufValue* value = find(key)) {
        out.reserve(value->count);
        for (std::uint32_t i = 0; i < value->count; ++i) {
            const bool narrow = value->type == GgufValueType::I32 || value->type == GgufValueType::U32;
            const auto number = narrow ? integerAt(value->type, value->data + i * sizeof(std::int32_t)) : std::nullopt;
            if (!number || !std::in_range<std::int32_t>(*number)) {
                bad(key, "must be a list of integers of 32 bits");
            }
            out.push_back(static_cast<std::int32_t>(*number));
        }
    }
    return out;
}

std::vector<float> GgufHeader::floats(std::string_view key) const {
    std::vector<float> out;
    if (const GgufValue* value = find(key)) {
        if (!value->array || value->type != GgufValueType::F32) {
            bad(key, "must be a list of float32");
        }
        out.resize(value->count);
        std::memcpy(out.data(), value->data, value->bytes);
    }
    return out;
}

void GgufHeader::join(GgufHeader part, std::uint32_t number) {
    for (GgufTensor& tensor : part.tensors_) {
        tensor.part = number;
        tensors_.push_back(tensor);
    }
    joined_.push_back(std::move(part.bytes_));
    std::ranges::sort(tensors_, {}, &GgufTensor::name);
    const auto twice = std::ranges::adjacent_find(tensors_, {}, &GgufTensor::name);
    if (twice != tensors_.end()) {
        part.bad(base::quotedText(twice->name), "is in another file of the model too");
    }
}

void GgufHeader::bad(std::string_view field, std::string_view what) const {
    throw base::BadInput(fmt::format("{}: {}: {}", file_, field, what));
}

void GgufHeader::unsupported(std::string_view field, std::string_view what) const {
    throw base::Unsupported(fmt::format("{}: {}: {}", file_, field, what));
}

} // namespace vitrine::engine
