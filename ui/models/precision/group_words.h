// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What is said of one group of weights. Pure functions; any thread.

#include <QString>
#include <cstddef>
#include <optional>

#include "engine/workload/precision/tensor_detail.h"

namespace vitrine::ui {

/// True where all levels are equally far apart, as those of integers are.
bool evenLevels(const engine::GroupDetail& group);
/// The code of a weight as people write it: steps from the level of 0.
int signedCode(const engine::GroupDetail& group, std::size_t weight);
/// The weight that is more than four times as large as each other one, and so sets the scale alone.
std::optional<std::size_t> lonelyWeight(const engine::GroupDetail& group);
/// "weight 442 of the row sets the scale: 27 of 32 weights become 0"; empty where no weight does.
QString lonelyWords(const engine::GroupDetail& group);
/// The weight with the largest error; nothing in an empty group.
std::optional<std::size_t> worstWeight(const engine::GroupDetail& group);

QString groupTitle(const engine::GroupDetail& group);      ///< "Group 29,173: row 1215, inputs 416 to 447"
QString groupScaleWords(const engine::GroupDetail& group); ///< "scale s = 0.48633 / 7 = 0.06948, in use 0.06934"

} // namespace vitrine::ui
