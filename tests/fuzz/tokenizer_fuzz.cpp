// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Any bytes as tokenizer.json and as text: success, BadInput or Unsupported, nothing else. The first byte says where
// the file ends and the text begins.

#include "engine/tokenizer/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine;
    if (size == 0) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t textSize = bytes.size() * data[0] / 1024;
    try {
        const auto tokenizer = engine::Tokenizer::fromJsonText(bytes.substr(textSize), "fuzz");
        const auto ids = tokenizer->encode(bytes.substr(0, textSize), true);
        engine::StreamDecoder stream(tokenizer);
        std::string text;
        for (const std::int32_t id : ids) {
            text += stream.push(id);
        }
        if (text + stream.finish() != tokenizer->decode(ids)) {
            std::abort();
        }
    } catch (const base::BadInput&) {
    } catch (const base::Unsupported&) {
    }
    return 0;
}
