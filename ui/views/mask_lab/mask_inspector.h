// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the Mask Lab: how sparse, in which form, why the pointed element is allowed or blocked, what that
// saves, other block sizes, and the other mask.

#include <QScrollArea>

#include "ui/models/mask_lab/mask_lab.h"
#include "ui/models/mask_lab/mask_reasons.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class FactRows;

class MaskInspector final : public QScrollArea {
    Q_OBJECT

public:
    explicit MaskInspector(QWidget* parent = nullptr);

    DockHeader* header() const { return header_; }
    /// Everything but what is under the pointer, of one side beside the other.
    void setLab(const MaskLab& lab, int side);
    /// None: the pointer is elsewhere.
    void setReasons(const std::optional<MaskReasons>& reasons);
    /// What is going on with a measurement of this side; empty: nothing.
    void setMeasuring(const QString& text);

    FactRows* facts() const { return facts_; }
    FactRows* reasons() const { return reasons_; }
    QWidget* timeHead() const { return forward_.head; }
    FactRows* blockSizes() const { return blocks_; }
    FactRows* against() const { return against_; }
    FactRows* forward() const { return forward_.rows; }
    FactRows* backward() const { return backward_.rows; }
    QString number(int index) const; ///< sparsity, full share, density
    QString hint() const;
    QString asText() const; ///< Markdown

signals:
    void blockSizeChosen(qint64 block);
    void readoutChanged(const QString& text);

private:
    struct Section {
        QWidget* head = nullptr;
        TextLabel *title = nullptr, *fact = nullptr;
        FactRows* rows = nullptr;
    };
    Section section(const QString& title, QWidget* content);
    /// So that pointing changes no height: the room for the conditions of a program is there before.
    void reserveReasons(const MaskLab::Side& shown);
    void setTimes(const MaskLab& lab, int side);
    void fillTimes(const Section& section, const std::optional<MaskDirectionTimes>& times, const MaskPlan* plan,
                   const MaskPlan::Direction& planned, std::optional<double> sparsity);
    void setAgainst(const MaskLab& lab, int side);

    DockHeader* header_;
    std::array<TextLabel*, 3> numbers_{};
    FactRows *facts_, *reasons_, *blocks_, *against_;
    Section pointed_, forward_, backward_, sizes_, other_;
    QWidget* pointedBox_;
    TextLabel *pointedHint_, *timeHint_, *timeNote_;
    MaskStudyPtr reserved_; ///< whose conditions the box has room for
    std::vector<std::int64_t> blockSizes_;
    QString measuring_, timeWords_;
};

} // namespace vitrine::ui
