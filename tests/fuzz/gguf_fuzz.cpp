// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "engine/checkpoint/gguf_header.h"
#include "engine/tokenizer/gguf_tokenizer.h"

namespace base = vitrine::base;
namespace engine = vitrine::engine;

namespace {

/// What a header that was accepted promises: tensors inside the file that do not overlap, and values that can be read
/// as what they are.
void requireInside(const engine::GgufHeader& header, std::uint64_t fileBytes) {
    for (const engine::GgufTensor& tensor : header.tensors()) {
        if (tensor.offset > fileBytes || tensor.bytes > fileBytes - tensor.offset ||
            header.tensor(tensor.name) != &tensor) {
            std::abort();
        }
    }
    for (const engine::GgufValue& value : header.values()) {
        if (header.find(value.key) != &value) {
            std::abort();
        }
        if (value.array && value.type == engine::GgufValueType::Text && header.texts(value.key).size() != value.count) {
            std::abort();
        }
        if (!value.array && value.type == engine::GgufValueType::Text) {
            header.text(value.key);
        }
    }
}

} // namespace

/// The first two bytes are the size of the data that follow the header's bytes in the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    const std::uint64_t dataBytes = data[0] + 256U * data[1];
    std::string bytes(reinterpret_cast<const char*>(data + 2), size - 2);
    const std::uint64_t fileBytes = bytes.size() + dataBytes;
    try {
        if (const auto header = engine::GgufHeader::parse(std::move(bytes), fileBytes, "fuzz")) {
            requireInside(*header, fileBytes);
            engine::ggufTokenizerJson(*header);
        }
    } catch (const base::Error& error) {
        if (error.message().find('\n') != std::string::npos) {
            std::abort();
        }
    }
    return 0;
}
