// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One group of a step: its prompt, a row for each answer with its reward and advantage, and the answers that are
// chosen: one, or two side by side where there is room for them.

#include <QWidget>

#include "ui/models/rl/rl_samples.h"

class QBoxLayout;
class QModelIndex;

namespace vitrine::ui {

class DeltaBarDelegate;
class FactTable;
class RlAnswerBox;
class TextLabel;

class RlGroupBox final : public QWidget {
    Q_OBJECT

public:
    /// `pairs`: Ctrl+click puts a second answer beside the first.
    RlGroupBox(bool pairs, QWidget* parent);

    /// An index of samples->groups.
    void setGroup(const RlSamplesPtr& samples, std::size_t group);
    /// The answer beside the table, and not below it.
    void setWide(bool wide);
    void chooseAnswer(std::size_t index);
    std::size_t answer() const { return chosen_; }
    FactTable* table() const { return table_; }
    RlAnswerBox* box() const { return first_; }
    RlAnswerBox* secondBox() const { return second_; }
    QString promptText() const;

signals:
    void answerOpened(); ///< Enter or a double click on a row

private:
    void showAnswers();
    void clicked(const QModelIndex& index);

    bool pairs_;
    QBoxLayout* parts_; ///< the table, and the answers
    TextLabel *prompt_, *facts_;
    FactTable* table_;
    DeltaBarDelegate* bars_ = nullptr; ///< of the last column
    RlAnswerBox *first_, *second_;
    RlSamplesPtr samples_;
    std::size_t group_ = 0, chosen_ = 0;
    std::optional<std::size_t> beside_;
};

} // namespace vitrine::ui
