// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What would have fitted: changes of the experiment, each priced on the Meta backend, with a button that opens the form
// with that change set.

#include <QWidget>
#include <vector>

#include "ui/models/memory/fit_changes.h"
#include "ui/models/memory/oom_summary.h"
#include "ui/widgets/base/view.h"

class QGridLayout;

namespace vitrine::ui {

class FitPanel final : public QWidget {
    Q_OBJECT

public:
    FitPanel(const ViewServices& context, QWidget* parent);

    /// The label at the right of the title: how the rows were priced.
    QWidget* note() const { return note_; }
    void setFailure(sessions::RunId run, const OomSummary& facts);
    bool waiting() const { return ticket_ != 0; }

    const std::vector<FitChange>& changes() const { return changes_.all(); }
    std::vector<FitChange> shown() const { return changes_.shown(); }
    QString asText() const; ///< what is shown, a line for each row

signals:
    void tried(const QString& experiment);
    void rowsChanged(); ///< a price came, or another failure is shown

private:
    void priceNext();
    void takePrice(quint64 ticket, const QString& metrics, const QString& error);
    void addHead();
    void addRow(int row, const FitChange& change, bool primary);
    QString stateText(const FitChange& change) const;
    QString lastText() const;
    void rebuild();
    ViewServices context_;
    TextLabel* note_;
    QGridLayout* grid_;
    TextLabel* last_;
    FitChanges changes_;
    OomSummary facts_;
    sessions::RunId run_ = 0;
    base::TimeNs shownTime_ = -1;
    quint64 ticket_ = 0;
};

} // namespace vitrine::ui
