// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/safetensors_header.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/checkpoint/config_reader.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

[[noreturn]] void bad(const std::string& file, std::string_view name, std::string_view what) {
    throw base::BadInput(fmt::format("{}: {}: {}", file, quotedText(name), what));
}

/// A non-negative integer, or nothing.
bool readCount(const json& value, std::uint64_t& out) {
    if (!value.is_number_unsigned()) {
        return false;
    }
    out = value.get<std::uint64_t>();
    return out <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

std::uint64_t bytesOfShape(const TensorEntry& entry, const std::string& file) {
    std::uint64_t bits = static_cast<std::uint64_t>(kernels::bitsOf(entry.dtype));
    // A zero dimension makes the product zero, whatever the others are: multiply those only that matter.
    const bool empty = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
    for (const std::int64_t dim : entry.shape) {
        if (!empty && __builtin_mul_overflow(bits, static_cast<std::uint64_t>(dim), &bits)) {
            bad(file, entry.name, "the product of its shape overflows");
        }
    }
    if (!empty && bits % 8 != 0) {
        bad(file, entry.name, "its elements do not fill whole bytes");
    }
    return empty ? 0 : bits / 8;
}

/// Leaves the offset relative to the data buffer.
TensorEntry readEntry(const std::string& name, const json& value, const std::string& file) {
    TensorEntry entry;
    entry.name = name;
    if (!value.is_object()) {
        bad(file, name, "must be an object with dtype, shape and data_offsets");
    }
    for (const auto& [key, unused] : value.items()) {
        if (key != "dtype" && key != "shape" && key != "data_offsets") {
            bad(file, name, fmt::format("unknown key {}", quotedText(key)));
        }
    }
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) {
        bad(file, name, "dtype must be a text such as \"BF16\"");
    }
    const auto known = kernels::dtypeFromSafetensors(dtype->get_ref<const std::string&>());
    if (!known) {
        bad(file, name, fmt::format("dtype {} is unknown", quotedText(dtype->get_ref<const std::string&>())));
    }
    entry.dtype = *known;
    const auto shape = value.find("shape");
    if (shape == value.end() || !shape->is_array()) {
        bad(file, name, "shape must be a list of integers");
    }
    for (const json& dim : *shape) {
        std::uint64_t count = 0;
        if (!readCount(dim, count)) {
            bad(file, name, "shape must hold integers that are not negative");
        }
        entry.shape.push_back(static_cast<std::int64_t>(count));
    }
    const auto offsets = value.find("data_offsets");
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2 || !readCount((*offsets)[0], begin) ||
        !readCount((*offsets)[1], end)) {
        bad(file, name, "data_offsets must be two integers that are not negative");
    }
    if (begin > end) {
        bad(file, name, fmt::format("data_offsets end ({}) before they begin ({})", end, begin));
    }
    const std::uint64_t bytes = bytesOfShape(entry, file);
    if (end - begin != bytes) {
        bad(file, name, fmt::format("data_offsets span {} bytes, but its shape and dtype need {}", end - begin, bytes));
    }
    entry.offset = begin;
    entry.bytes = bytes;
    return entry;
}

void readMetadata(const json& value, SafetensorsHeader& header, const std::string& file) {
    if (!value.is_object()) {
        bad(file, "__metadata__", "must be an object of texts");
    }
    for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) {
            bad(file, "__metadata__", fmt::format("the value of {} must be a text", quotedText(key)));
        }
        header.metadata.emplace(key, text.get<std::string>());
    }
}

void requireDistinctNames(const std::vector<TensorEntry>& tensors, const std::string& file) {
    std::vector<std::string_view> names;
    names.reserve(tensors.size());
    for (const TensorEntry& entry : tensors) {
        names.push_back(entry.name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
        bad(file, *twice, "appears twice");
    }
}

} // namespace

SafetensorsHeader parseSafetensorsHeader(std::string_view text, std::uint64_t fileBytes, const std::string& file) {
    if (text.empty() || text.front() != '{') {
        throw base::BadInput(file + ": header: does not begin with '{'; this is no safetensors file");
    }
    base::JsonLimits limits;
    limits.maxBytes = kMaxSafetensorsHeader;
    limits.maxDepth = 4;
    const std::uint64_t dataStart = 8 + text.size();
    SafetensorsHeader header;
    bool hasMetadata = false;
    base::forStrictMembers(text, file + ": header", limits, [&](const std::string& name, const json& value) {
        if (name == "__metadata__") {
            if (std::exchange(hasMetadata, true)) {
                bad(file, name, "appears twice");
            }
            readMetadata(value, header, file);
        } else if (header.tensors.size() == kMaxSafetensorsTensors) {
            throw base::BadInput(fmt::format("{}: header: describes more than {} tensors; save the model in several "
                                             "files",
                                             file, kMaxSafetensorsTensors));
        } else {
            header.tensors.push_back(readEntry(name, value, file));
        }
    });
    requireDistinctNames(header.tensors, file);
    std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
        return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
    });
    std::uint64_t end = 0;
    for (TensorEntry& entry : header.tensors) {
        if (entry.offset != end) {
            bad(file, entry.name,
                fmt::format("data_offsets begin at {}, but the tensor before ends at {}: tensors may not {}",
                            entry.offset, end, entry.offset < end ? "overlap" : "leave holes"));
        }
        end = entry.offset + entry.bytes; // both are below 2^63
        entry.offset += dataStart;
    }
    const std::uint64_t expected = dataStart + end;
    if (fileBytes != expected) {
        throw base::BadInput(fmt::format("{}: size: {} bytes, but its header describes {}; the file is {}", file,
                                         fileBytes, expected,
                                         fileBytes < expected ? "incomplete: download it again" : "damaged"));
    }
    return header;
}

} // namespace vitrine::engine
