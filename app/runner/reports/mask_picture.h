// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>

#include "kernels/program/block_mask.h"

namespace vitrine::app {

/// Writes a picture of the blocks of batch entry 0 and head 0: full dark, partial lighter, empty nearly white.
void writeMaskPicture(const kernels::BlockMask& mask, const std::string& path);

} // namespace vitrine::app
