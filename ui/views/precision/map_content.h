// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the map of the Precision lab shows of a run. The cells must outlive the content, whose readout looks at them.

#include "ui/models/precision/precision_data.h"
#include "ui/models/precision/precision_map.h"
#include "ui/widgets/plots/heat_map.h"

namespace vitrine::ui {

/// A row for each role, a column for each layer: the mean of a cell's matrices in a format.
HeatMapContent roleContent(const PrecisionDataPtr& data, const PrecisionMap& cells, const ErrorScale& scale,
                           std::size_t format);
/// A row for each expert of a role.
HeatMapContent expertContent(const PrecisionDataPtr& data, const PrecisionMap& cells, const ErrorScale& scale,
                             std::size_t format, std::size_t role);

} // namespace vitrine::ui
