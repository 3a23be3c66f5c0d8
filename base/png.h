// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// PNG files (ISO/IEC 15948) of 8-bit RGB pixels, without compression.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::base {

/// `rgb`: rows from top to bottom, 3 bytes a pixel. Throws Internal when its size is not 3 * width * height or a side
/// is not between 1 and 32768.
std::string encodePng(int width, int height, std::span<const std::uint8_t> rgb);

/// Whether a file that begins so was made by encodePng: its text "Software" says so.
bool isEncodedPng(std::string_view head);

} // namespace vitrine::base
