// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/token_offsets.h"

#include <algorithm>
#include <string>

namespace vitrine::engine {

std::vector<std::size_t> tokenOffsets(const Tokenizer& tokenizer, std::string_view text,
                                      std::span<const std::int32_t> ids) {
    // A short piece is found by chance soon, so it is looked for only nearby.
    constexpr std::size_t kReachOfAByte = 16, kMostReach = 256;
    std::vector<std::size_t> offsets;
    offsets.reserve(ids.size() + 1);
    std::size_t at = 0;
    for (const std::int32_t id : ids) {
        std::string piece = tokenizer.bytesOf(id);
        const std::string_view rest = text.substr(at);
        // The first word of a text can have a space that the text does not have.
        if (piece.starts_with(' ') && !rest.starts_with(piece) && rest.starts_with(std::string_view(piece).substr(1))) {
            piece.erase(0, 1);
        }
        const std::size_t reach = piece.size() + std::min(piece.size() * kReachOfAByte, kMostReach);
        const std::size_t found = piece.empty() ? std::string_view::npos : rest.substr(0, reach).find(piece);
        offsets.push_back(found == std::string_view::npos ? at : at + found);
        at = found == std::string_view::npos ? at : at + found + piece.size();
    }
    offsets.push_back(text.size());
    return offsets;
}

} // namespace vitrine::engine
