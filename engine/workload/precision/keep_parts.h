// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which weights could stay in BF16 while a format packs the others. Pure functions; any thread.

#include <cstddef>
#include <string>
#include <vector>

#include "engine/workload/precision/precision_result.h"

namespace vitrine::engine {

/// How many pairs of role and layer are tried beside whole roles.
inline constexpr std::size_t kWorstCells = 8;

/// What is worth trying in a format: each role that it packs, and the kWorstCells pairs of role and layer with the most
/// squared error for the squared weights. Neighbouring layers of a role are one candidate. Effects have their parts
/// and bytesAdded, roles first. REQUIRES the errors of the format.
std::vector<KeepEffect> keepCandidates(const PrecisionResult& result, std::size_t format);

/// "k, all layers", "k, layer 3", "k, layers 0 and 1", "k, layers 3 to 5".
std::string keepTitle(const KeepPart& part);

/// The pattern of an ignore list (engine/quant/module_pattern.h) that means the part: the last part of the modules'
/// names, such as "down_proj", or a regular expression with the numbers of layers. Empty: the model has no such
/// weights.
std::string keepPattern(const PrecisionResult& result, const KeepPart& part);

} // namespace vitrine::engine
