// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the Precision lab: the matrix that is looked at, its experts, the same in other formats, what could
// stay in BF16, and where the error sits.

#include <QObject>
#include <memory>

#include "ui/models/precision/pin_table.h"
#include "ui/models/precision/precision_map.h"
#include "ui/models/precision/tensor_reader.h"

class QPushButton;
class QScrollArea;
class QWidget;

namespace vitrine::ui {

class DockHeader;
class ExpertStrip;
class FactTable;
class KeepPanel;
class LabHead;
class PlanTabs;
class TextLabel;

class LabPanel final : public QObject {
    Q_OBJECT

public:
    explicit LabPanel(QObject* owner);

    QScrollArea* panel() const { return panel_; }
    DockHeader* header() const { return header_; }
    KeepPanel* keep() const { return keep_; }
    ExpertStrip* experts() const { return experts_; }
    QPushButton* effectsButton() const { return effects_; } ///< asks what keeping each role saves

    void clear(); ///< nothing is shown until the next data
    /// A matrix in a format, among those of its cell; the scale is that of SNR.
    void showWeight(const PrecisionDataPtr& data, std::size_t format, std::size_t weight, const PrecisionCell& cell,
                    const ErrorScale& scale);
    /// What was read of it; null: nothing yet. `title` is that of the format.
    void showTensor(const PrecisionTensor* tensor, const QString& title);
    void showKeep(const PrecisionDataPtr& data, std::size_t format);
    /// What the button would pin; its figures stand beside those of what is pinned. Without a tensor: nothing yet.
    void showPinnable(const LabPin& shown);
    const LabPin& pin() const { return pinned_; }
    void unpin();
    QPushButton* pinButton() const { return pin_; } ///< checked while something is pinned
    FactTable* pinTable() const { return pinTable_; }

private:
    void updatePin();
    QWidget* buildFigures(QWidget* parent);
    void showFigures(const PrecisionDataPtr& data, std::size_t format, std::size_t weight);

    QScrollArea* panel_;
    DockHeader* header_;
    PlanTabs* tabs_;
    TextLabel *ratio_, *ratioName_, *bytes_, *bytesName_;
    LabHead *pinHead_, *expertHead_, *choiceHead_, *keepHead_, *placeHead_;
    ExpertStrip* experts_;
    FactTable *pinTable_, *choices_, *places_;
    KeepPanel* keep_;
    QPushButton *effects_, *copy_, *pin_;
    LabPin shown_, pinned_;
    QString words_; ///< that the button copies
};

} // namespace vitrine::ui
