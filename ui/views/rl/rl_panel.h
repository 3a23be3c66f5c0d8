// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of reinforcement learning: the figures of a step of A and B, and one of its groups.

#include <QScrollArea>

#include "ui/models/rl/rl_samples.h"
#include "ui/models/rl/rl_step_text.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class FactTable;
class RlGroupBox;

class RlPanel final : public QScrollArea {
    Q_OBJECT

public:
    RlPanel();

    DockHeader* header() const { return header_; }
    /// Below the view it scrolls: it asks for no more than its share.
    QSize sizeHint() const override { return {200, 120}; }
    /// `chosen`: the step is the one under the cursor, and not the last one.
    void setStep(const RlStepPair& pair, bool chosen);
    /// The means of a range of steps in place of a step.
    void setMeans(const FlatTreePtr& means, std::int64_t first, std::int64_t last, bool both);
    /// `place`: of the group in the order in which one goes through the `of` groups, from 0. Without any, `nothing`
    /// says why.
    void setSamples(const RlGroupPair& pair, std::size_t place, std::size_t of, const QString& nothing);
    /// A step whose tokens were kept, where those of the shown one were not.
    void setOtherStep(std::optional<std::int64_t> step);
    SegmentedControl* tabs() const { return tabs_; }
    FactTable* figures() const { return figures_; }
    RlGroupBox* group() const { return group_; }
    QString samplesText() const; ///< "group 37 of 128", or why there are none
    QString asText() const;

signals:
    void groupWanted(int direction); ///< the one before (-1) or after (+1) the shown one
    void samplesWanted();            ///< the page Samples
    void stepWanted(qint64 step);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void showTab();
    void showFigures(bool both);

    DockHeader *header_, *samplesHeader_;
    TextLabel *which_, *place_, *nothing_;
    QPushButton *previous_, *next_;
    FactTable *figures_, *more_; ///< more_: the second half, where they stand side by side
    QWidget* figuresPart_;
    FlatTreePtr table_; ///< all figures
    bool both_ = false;
    RlGroupBox* group_;
    SegmentedControl* tabs_; ///< tabs_: where the panel lies below the view
    QPushButton* goTo_;
    QWidget *samplesPart_, *goingPart_;
    std::optional<std::int64_t> otherStep_;
    bool any_ = false, wide_ = false; ///< any_: there is a step
};

} // namespace vitrine::ui
