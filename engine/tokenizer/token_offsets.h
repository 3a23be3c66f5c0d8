// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

/// Where the tokens of a text begin in it, in bytes: token i stands for [offset i, offset i + 1), and the last offset
/// is the text's size. Never falling. Where a normalizer changed the text, the tokens of the changed part share its
/// place: exact again from the next token that stands in the text. Linear in the text.
std::vector<std::size_t> tokenOffsets(const Tokenizer& tokenizer, std::string_view text,
                                      std::span<const std::int32_t> ids);

} // namespace vitrine::engine
