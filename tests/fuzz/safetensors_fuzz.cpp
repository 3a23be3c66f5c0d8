// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/checkpoint/safetensors_header.h"

namespace base = vitrine::base;
namespace engine = vitrine::engine;

namespace {

/// What a header that was accepted promises: tensors that fill the data without holes.
void requireFilled(const engine::SafetensorsHeader& header, std::uint64_t dataStart, std::uint64_t fileBytes) {
    std::uint64_t end = dataStart;
    for (const engine::TensorEntry& entry : header.tensors) {
        if (entry.offset != end) {
            std::abort();
        }
        end += entry.bytes;
    }
    if (end != fileBytes) {
        std::abort();
    }
}

} // namespace

/// The first two bytes are the size of the data, the rest is the header's text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    const std::uint64_t dataBytes = data[0] + 256U * data[1];
    const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
    const std::uint64_t fileBytes = 8 + text.size() + dataBytes;
    try {
        requireFilled(engine::parseSafetensorsHeader(text, fileBytes, "fuzz"), 8 + text.size(), fileBytes);
    } catch (const base::BadInput& error) {
        if (error.message().find('\n') != std::string::npos) {
            std::abort();
        }
    }
    return 0;
}
