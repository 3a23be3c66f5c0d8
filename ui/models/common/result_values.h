// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Numbers of results as the desktop program writes them, in the unit that the field's declaration says
// (engine/workload/experiment/results.h). Pure functions; any thread.

#include <QString>
#include <optional>
#include <string_view>

namespace vitrine::ui {

/// "1.5 GiB" for the path "peak_bytes". A dash where there is no number. A path that no workload declares is a bare
/// number.
QString metricText(std::string_view path, std::optional<double> value);

} // namespace vitrine::ui
