// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Whether the plan of one run is the plan of another. Pure function.

#include <string>

namespace vitrine::ui {

/// Whether two experiments differ only in where and how they are run, not in what is computed.
bool sameExperiment(const std::string& specA, const std::string& specB);

} // namespace vitrine::ui
