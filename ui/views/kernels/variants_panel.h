// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which variant answered each op, and the A/B of two of them: the same experiment is run again with one other variant,
// and both runs stand side by side in the table.

#include "ui/models/kernels/kernel_variants.h"
#include "ui/widgets/base/view.h"

class QComboBox;
class QPushButton;
class QTreeView;

namespace vitrine::ui {

class VariantsPanel final : public QWidget {
    Q_OBJECT

public:
    VariantsPanel(const ViewServices& context, QWidget* parent);

    void setSides(std::optional<VariantSide> a, std::optional<VariantSide> b);
    /// Puts the cursor on the variant that holds this kernel.
    void choose(const QString& kernel);
    /// Announces which kernel the chosen variant is, for whoever looks at this page now.
    void announceChosen();
    /// Empty: the chosen op can be compared now. Otherwise why not, in one sentence.
    QString whyNot() const;
    void startComparison();

    QTreeView* table() const { return table_; }
    QComboBox* candidates() const { return candidates_; }
    QPushButton* button() const { return button_; }
    QString text() const; ///< as tab-separated text
    QString status() const { return status_->text(); }

signals:
    void kernelChosen(const QString& name);
    void availabilityChanged();

private:
    const UsedVariant* chosen() const;
    void refresh();
    void refreshChoice();
    void finishComparison();

    ViewServices context_;
    QTreeView* table_;
    FlatTreeModel* model_;
    TextLabel *op_, *status_;
    QComboBox* candidates_;
    QPushButton* button_;
    std::optional<VariantSide> a_, b_;
    std::vector<Candidate> offered_;
    /// The A of a comparison that runs, and its B once it has begun.
    sessions::RunId comparedA_ = 0, comparedB_ = 0;
    bool ended_ = false;
    bool withB_ = false; ///< the columns of B are there
};

} // namespace vitrine::ui
