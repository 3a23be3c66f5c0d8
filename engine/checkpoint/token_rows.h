// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Token ids in a safetensors file: the tensor `input_ids` (batch, seq), I32 or I64.

#include <cstdint>
#include <string>
#include <vector>

namespace vitrine::engine {

/// The rows of `input_ids`. Throws BadInput "FILE: input_ids: what".
std::vector<std::vector<std::int32_t>> readTokenRows(const std::string& path);
/// Throws BadInput "ORIGIN: what" when an id is outside the vocabulary.
void checkTokenIds(const std::vector<std::vector<std::int32_t>>& rows, std::int64_t vocab, const std::string& origin);

} // namespace vitrine::engine
