// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What `vitrine mask` and `vitrine attention` share: programs chosen from files and the catalogue, and pictures of masks.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/attention/mod_source.h"
#include "kernels/program/block_mask.h"

namespace vitrine::app {

/// Sizes that texts may read as globals, and where captured tensors come from.
struct ModRequest {
    std::vector<std::string> files;              ///< read in order, later ones win
    std::map<std::string, std::int64_t> defines; ///< NAME=INTEGER of the command line
    std::int64_t batch = 1, heads = 1, kvHeads = 1, queries = 0, keys = 0, headDim = 0;
};

/// Files of the request. Throws BadInput, ModError.
engine::ModModule parseMods(const ModRequest& request);
/// B, H, S, Q_LEN, KV_LEN, ... and the defines, which win.
engine::ModOptions modOptions(const ModRequest& request, const engine::CapturedTensors& tensors);

/// Writes a picture of the blocks of batch entry 0 and head 0: full dark, partial lighter, empty nearly white.
void writeMaskPicture(const kernels::BlockMask& mask, const std::string& path);

} // namespace vitrine::app
