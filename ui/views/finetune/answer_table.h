// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the model answered to fixed prompts: a row of two lines for each prompt, the answers of two steps side by side.

#include <QTableView>

#include "ui/models/common/flat_tree.h"
#include "ui/models/finetune/training_run.h"
#include "ui/widgets/base/controls.h"

class QComboBox;

namespace vitrine::ui {

class AnswerTable final : public QWidget {
    Q_OBJECT

public:
    static constexpr int kHead = 27, kRow = 42;

    explicit AnswerTable(QWidget* parent);

    /// Null: there is no run. The newest answers stand at the right until somebody chooses others.
    void setRun(const TrainingRunPtr& run);
    /// Shows the answers of a step at the right or the left; false: there are none of it.
    bool show(std::int64_t step, bool left);
    std::int64_t leftStep() const;  ///< -1: none
    std::int64_t rightStep() const; ///< -1: none
    /// How many rows stand below the head at most; further ones scroll. 0: the head alone.
    void setMostRows(int rows);
    QComboBox* leftBox() const { return left_; }
    QComboBox* rightBox() const { return right_; }
    QTableView* view() const { return view_; }
    QPushButton* addButton() const { return add_; }
    QString asText() const;

signals:
    void chosen();        ///< other steps are shown
    void promptsWanted(); ///< there are none, and somebody wants some

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void fillBoxes();
    void showChosen();
    void place();

    Surface* head_;
    TextLabel *title_, *facts_, *next_;
    QPushButton* add_;
    QComboBox *left_, *right_;
    QTableView* view_;
    FlatTreeModel* model_;
    TrainingRunPtr run_;
    bool follows_ = true;
    int mostRows_ = 3;
};

} // namespace vitrine::ui
