// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the layers of a step's memory are and how much each takes: a column beside the plot, or rows above it in low
// windows.

#include <QObject>
#include <vector>

#include "ui/models/rl/rl_phases.h"

class QWidget;

namespace vitrine::ui {

class FactTable;
class LegendStrip;

class RlStepLegend final : public QObject {
    Q_OBJECT

public:
    explicit RlStepLegend(QWidget* parent);

    FactTable* column() const { return column_; }
    LegendStrip* strip() const { return strip_; }
    void setLow(bool low);
    /// `head`: of what the parts are. What is nothing even in `most` is left out.
    void setParts(const QString& head, const std::vector<RlStepPart>& parts, const std::vector<RlStepPart>& most);

private:
    void fitColumn();

    FactTable* column_;
    LegendStrip* strip_;
    std::vector<RlStepPart> most_; ///< what the column has swatches of
};

} // namespace vitrine::ui
