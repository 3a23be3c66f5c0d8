// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Changes that would make a set of techniques fit: rows of 40 with a tick or a cross, bytes, the step's time, and Try.

#include <QString>
#include <QWidget>
#include <vector>

#include "engine/workload/planner/what_if.h"

class QGridLayout;
class QPushButton;

namespace vitrine::ui {

class ChangeList final : public QWidget {
    Q_OBJECT

public:
    explicit ChangeList(QWidget* parent);

    /// `experiment` is what the changes are of, `before` its price.
    void setChanges(const std::vector<engine::PlanChange>& changes, const engine::Experiment& experiment,
                    const engine::PlanPrice& before);
    void clear();
    QPushButton* tryButton(int row) const; ///< null where the change is not enough
    QString asText() const;                ///< a line for each row

signals:
    void tried(int row);

private:
    void addRow(int row, const engine::PlanChange& change, const engine::Experiment& experiment,
                const engine::PlanPrice& before);

    QGridLayout* grid_;
    std::vector<QPushButton*> buttons_;
    QString text_;
};

} // namespace vitrine::ui
