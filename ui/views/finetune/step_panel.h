// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the page Step: the result, peak and time of each phase, what was held at each peak, offload, and
// whether both steps agree.

#include <optional>

#include "ui/models/finetune/step_text.h"
#include "ui/widgets/plots/result_panel.h"

namespace vitrine::ui {

class FactTable;

class StepPanel final : public ResultPanel {
    Q_OBJECT

public:
    StepPanel();

    DockHeader* header() const { return header_; }
    /// Below the view it scrolls: it asks for no more than its share.
    QSize sizeHint() const override { return {200, 120}; }
    /// Null: there is no step.
    void setPair(const StepPairPtr& pair, const std::optional<StepAdvice>& advice);
    FactTable* peaks() const { return peaks_; }
    FactTable* times() const { return times_; }
    FactTable* categories() const { return categories_; }
    FactTable* offload() const { return offload_; }
    FactTable* agreement() const { return agreement_; }
    QString asText() const;

private:
    DockHeader *header_, *offloadHeader_, *agreementHeader_;
    TextLabel *facts_, *whose_;
    FactTable *peaks_, *times_, *categories_, *offload_, *agreement_;
};

} // namespace vitrine::ui
