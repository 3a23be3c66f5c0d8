// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// No member of tokenizer.json is passed over: what nobody knows is named once in a warning. The readers of each part
// refuse the values that they cannot follow.

#include <string>
#include <vector>

#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

/// The members of a tokenizer.json that no part of the tokenizer knows, by their paths. Types that are not known are
/// the readers' affair.
std::vector<std::string> unknownTokenizerKeys(const JsonField& root);

} // namespace vitrine::engine
