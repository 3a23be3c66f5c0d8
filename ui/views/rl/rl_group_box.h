// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One group of a step: its prompt, a row for each answer with its reward and advantage, and the chosen answers. With a
// baseline the rows have the answers of both runs, and one of each stands beside the other, or under it where there is
// no room; without one, Ctrl+click puts a second answer beside the first.

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
    /// `pairs`: Ctrl+click chooses a second answer, or that of B alone.
    RlGroupBox(bool pairs, QWidget* parent);

    void setGroups(const RlGroupPair& pair);
    /// The answers beside the table, and not below it.
    void setWide(bool wide);
    /// There is height for some lines of each of two answers under each other.
    void setTall(bool tall);
    void chooseAnswer(std::size_t index);
    std::size_t answer() const { return chosen_; }
    FactTable* table() const { return table_; }
    RlAnswerBox* box() const { return first_; }
    RlAnswerBox* secondBox() const { return second_; }
    /// The two answers stand beside each other.
    bool sideBySide() const;
    QString promptText() const;

signals:
    void answerOpened(); ///< Enter or a double click on a row

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void showPrompt(const RlSampleGroup& group);
    void showTable();
    void showAnswers();
    void selectRows();
    void arrange();
    void clicked(const QModelIndex& index);

    bool pairs_, wide_ = false, tall_ = false;
    QBoxLayout *parts_, *answers_; ///< parts_: the table, and the answers
    TextLabel *prompt_, *facts_;
    FactTable* table_;
    DeltaBarDelegate* bars_ = nullptr; ///< of the last column
    RlAnswerBox *first_, *second_;
    RlGroupPair pair_;
    std::size_t chosen_ = 0;
    std::optional<std::size_t> beside_; ///< the second answer; of B the one of the same row where nothing is chosen
    int tableWidth_ = 0;
};

} // namespace vitrine::ui
