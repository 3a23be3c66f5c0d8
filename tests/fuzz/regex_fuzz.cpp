// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any pattern compiles, is BadInput or is Unsupported; what compiles finds ordered matches that end between characters.
// The first byte says where the text ends and the pattern begins.

#include "engine/tokenizer/regex.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/tokenizer/regex_translate.h"
#include "engine/tokenizer/unicode_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine;
    if (size == 0 || size > 4096) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t textSize = bytes.size() * data[0] / 512;
    const std::string text = engine::replaceInvalidUtf8(bytes.substr(0, textSize));
    const auto insideCharacter = [&text](std::size_t at) {
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
    };
    try {
        const std::string_view pattern = bytes.substr(textSize);
        engine::translateOnigurumaPattern(pattern, "fuzz");
        const engine::Regex regex(pattern, "fuzz");
        std::size_t last = 0;
        for (const auto& [begin, end] : regex.findAll(text)) {
            if (begin < last || end < begin || end > text.size() || insideCharacter(begin) || insideCharacter(end)) {
                std::abort();
            }
            last = end;
        }
    } catch (const base::BadInput&) {
        return 0;
    } catch (const base::Unsupported&) {
        return 0;
    }
    return 0;
}
