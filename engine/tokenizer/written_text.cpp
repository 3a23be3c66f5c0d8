// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/written_text.h"

#include <algorithm>

namespace vitrine::engine {

bool WrittenText::touches(std::size_t begin, std::size_t end) const {
    if (marks_.empty()) {
        return false;
    }
    const std::span<const std::uint8_t> part = marks_.subspan(begin, end - begin);
    return std::any_of(part.begin(), part.end(), [](std::uint8_t mark) { return mark != 0; });
}

bool WrittenText::Occurrences::nextIsWritten(const std::string& token) {
    if (text_.marks_.empty()) {
        return false;
    }
    std::size_t& from = next_.try_emplace(token, begin_).first->second;
    const std::size_t at = text_.text_.substr(0, end_).find(token, from);
    if (at == std::string_view::npos) {
        // The normalizer made it of other letters.
        return text_.touches(begin_, end_);
    }
    from = at + token.size();
    return text_.touches(at, from);
}

} // namespace vitrine::engine
