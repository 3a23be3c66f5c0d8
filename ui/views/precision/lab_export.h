// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files that the Precision lab writes of its map. Both ask where to, over `parent`.

#include "ui/models/precision/precision_map.h"

class QWidget;

namespace vitrine::ui {

class HeatMap;

/// What came of it. Nobody chose a file: both are empty.
struct Exported {
    QString error; ///< one sentence
    QString done;  ///< "The table is in precision.csv"
};

/// The errors of all weights as CSV.
Exported exportTable(QWidget* parent, const engine::PrecisionResult& result, const PrecisionMap& cells,
                     std::size_t format);
/// The map as SVG or PNG, by the file's ending; `format` stands under its title.
Exported exportPicture(QWidget* parent, HeatMap& map, const QString& format);

} // namespace vitrine::ui
