// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The Planner's form: context, the numbers of the workload and its techniques with what each saves. It shows a draft
// and says what is changed; it changes nothing itself.

#include <QString>
#include <string>
#include <vector>

#include "engine/workload/planner/what_if.h"
#include "ui/models/planner/plan_draft.h"
#include "ui/widgets/base/controls.h"

class QCheckBox;
class QHBoxLayout;
class QVBoxLayout;

namespace vitrine::ui {

class NamedCombo;
class NumberSlider;

class PlanForm final : public Surface {
    Q_OBJECT

public:
    explicit PlanForm(QWidget* parent);

    void setDraft(const PlanDraft& draft);
    /// What switches save, and where the context ends; `axisTop` is the end of the slider.
    void setAnswer(const engine::WhatIf& answer, std::int64_t axisTop);

    NumberSlider* context() const { return context_; }
    NumberSlider* number(const std::string& key) const; ///< null: the workload has no such number
    NamedCombo* choice(const std::string& key) const;   ///< null: the workload has no such list
    QCheckBox* check(int row) const;                    ///< of a technique; null: there are fewer
    /// A knob is held: axes stay as they are.
    bool held() const;

signals:
    void contextChanged(qint64 tokens);
    void numberChanged(const QString& key, qint64 value);
    void choiceChanged(const QString& key, const QString& value);
    void switchChanged(int row, bool on);

private:
    struct Number {
        std::string key;
        NumberSlider* slider;
    };
    struct Check {
        QCheckBox* box;
        TextLabel* saves;
    };
    /// `lists`: the workload has lists of choices, with room beside them.
    void fillNumbers(const std::vector<PlanNumber>& numbers, bool lists);
    void fillChoices(const std::vector<PlanChoice>& choices);
    void fitHeight();
    void fillChecks(const engine::Experiment& experiment);

    NumberSlider* context_;
    QHBoxLayout* numberRow_;
    QWidget* choiceRow_;     ///< hidden for workloads without lists
    QVBoxLayout* checkRows_; ///< four in each
    std::vector<Number> numbers_;
    std::vector<std::pair<std::string, NamedCombo*>> choices_;
    std::vector<Check> checks_;
};

} // namespace vitrine::ui
