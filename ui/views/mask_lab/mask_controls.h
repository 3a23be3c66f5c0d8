// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The controls in the header of the Mask Lab: which side and what of it is shown, sizes, and the buttons that write
// arrays and pictures and measure. Sizes and scores go to the lab, what is shown goes to the map.

#include "ui/models/mask_lab/mask_lab.h"
#include "ui/widgets/base/view.h"
#include "ui/widgets/block_map/block_map.h"

class QCheckBox;
class QComboBox;
class QPushButton;

namespace vitrine::ui {

class MaskRuns;
class NumberField;

class MaskControls final : public QObject {
    Q_OBJECT

public:
    /// The controls become children of `header`. Lab and map outlive them.
    MaskControls(MaskLab* lab, BlockMap* map, const ActionList& actions, ViewHeader* header);

    void showSide(BlockMap::Side side);
    void showSizes(); ///< those of the lab
    void showContent(BlockMap::Content content);
    void toggleLink();
    /// Whether the buttons Measure and Stop can do something now, and why not. `side`: the one that would be measured.
    void showMeasure(const MaskRuns& runs, int side);
    /// In a narrow view some of the controls go; commands do the same.
    void setNarrow(bool narrow);

    SegmentedControl* sides() const { return sides_; }
    QComboBox* block() const { return block_; }
    QComboBox* scores() const { return scores_; }
    NumberField* queries() const { return queries_; }
    NumberField* keys() const { return keys_; }
    QPushButton* measure() const { return measure_; }
    QPushButton* stop() const { return stop_; }

signals:
    void sideChosen(vitrine::ui::BlockMap::Side side);
    void measureClicked();
    void stopClicked();

private:
    void buildChoices(ViewHeader* header);
    void buildSizes(ViewHeader* header);
    void buildButtons(const ActionList& actions, ViewHeader* header);

    MaskLab* lab_;
    BlockMap* map_;
    SegmentedControl *sides_ = nullptr, *contents_ = nullptr;
    QComboBox *scores_ = nullptr, *block_ = nullptr;
    NumberField *queries_ = nullptr, *keys_ = nullptr;
    QCheckBox* link_ = nullptr;
    QPushButton *export_ = nullptr, *measure_ = nullptr, *stop_ = nullptr;
};

} // namespace vitrine::ui
