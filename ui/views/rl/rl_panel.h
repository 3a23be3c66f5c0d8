// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of reinforcement learning: the figures of a step of A and B.

#include <QScrollArea>

#include "ui/models/rl/rl_step_text.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class FactTable;

class RlPanel final : public QScrollArea {
    Q_OBJECT

public:
    RlPanel();

    DockHeader* header() const { return header_; }
    /// Below the view it scrolls: it asks for no more than its share.
    QSize sizeHint() const override { return {200, 120}; }
    /// `chosen`: the step is the one under the cursor, and not the last one.
    void setStep(const RlStepPair& pair, bool chosen);
    FactTable* figures() const { return figures_; }
    QString asText() const;

private:
    DockHeader* header_;
    TextLabel* which_;
    FactTable* figures_;
};

} // namespace vitrine::ui
