// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The header of a safetensors file, apart from any file: 8 bytes little-endian N, then N bytes of JSON
//   {"NAME": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__": {"key": "text"}}
// then the data buffer, which the tensors fill without holes or overlaps.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// A header may not be longer than this many bytes.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Nor describe more tensors: many times what the largest checkpoints have in one of their files.
inline constexpr std::size_t kMaxSafetensorsTensors = std::size_t{1} << 18;

struct SafetensorsHeader {
    std::vector<TensorEntry> tensors; ///< by offset; offsets count from the start of the file
    std::map<std::string, std::string> metadata;
};

/// Checks and reads the JSON `text`. `fileBytes` is the size of the whole file. Throws BadInput "FILE: NAME: what".
SafetensorsHeader parseSafetensorsHeader(std::string_view text, std::uint64_t fileBytes, const std::string& file);

} // namespace vitrine::engine
