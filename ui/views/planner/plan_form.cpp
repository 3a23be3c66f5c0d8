// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/plan_form.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QSignalBlocker>
#include <QSlider>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
#include "ui/widgets/forms/named_combo.h"
#include "ui/widgets/forms/number_slider.h"

namespace vitrine::ui {

namespace {

constexpr int kPlanFormHeight = 82, kCheckRowHeight = 24, kChoiceRowHeight = 28;
constexpr std::size_t kChecksOfRow = 4, kNumbersBesideContext = 2;
constexpr int kContextPage = 8192;

/// "saves 420.27 GiB", "costs 1.20 GiB"
QString savesText(const engine::WhatIfSwitch& one) {
    if (!one.priced) {
        return {};
    }
    const QString bytes = bytesText(static_cast<std::uint64_t>(std::abs(one.saves)));
    return one.saves >= 0 ? PlanForm::tr("saves %1").arg(bytes) : PlanForm::tr("costs %1").arg(bytes);
}

} // namespace

PlanForm::PlanForm(QWidget* parent) : Surface(Fill::Panel, Bottom, parent) {
    setFixedHeight(kPlanFormHeight);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(12, 6, 12, 6);
    column->setSpacing(4);
    numberRow_ = new QHBoxLayout;
    numberRow_->setSpacing(28);
    checkRows_ = new QVBoxLayout;
    checkRows_->setSpacing(2);
    context_ = new NumberSlider(tr("Context, tokens"), true, this);
    context_->setInRow();
    numberRow_->addWidget(context_, 5);
    column->addLayout(numberRow_);
    choiceRow_ = new QWidget(this);
    auto* choices = new QHBoxLayout(choiceRow_);
    choices->setContentsMargins(0, 0, 0, 0);
    choices->setSpacing(12);
    choices->addStretch(1);
    choiceRow_->hide();
    column->addWidget(choiceRow_);
    column->addLayout(checkRows_);
    connect(context_, &NumberSlider::moved, this,
            [this](double value) { emit contextChanged(static_cast<qint64>(value)); });
}

void PlanForm::fillNumbers(const std::vector<PlanNumber>& numbers, bool lists) {
    const bool same =
        lists != choices_.empty() && std::ranges::equal(numbers, numbers_, {}, &PlanNumber::key, &Number::key);
    if (!same) {
        for (const Number& number : numbers_) {
            delete number.slider;
        }
        numbers_.clear();
        for (const PlanNumber& number : numbers) {
            auto* slider = new NumberSlider(number.label, true, this);
            slider->setInRow();
            // Beside the lists there is room for those that would leave the first row none.
            const bool second = lists && numbers_.size() >= kNumbersBesideContext;
            (second ? static_cast<QHBoxLayout*>(choiceRow_->layout()) : numberRow_)->addWidget(slider, 2);
            numbers_.push_back({number.key, slider});
            connect(slider, &NumberSlider::moved, this, [this, key = number.key](double value) {
                emit numberChanged(textOf(key), static_cast<qint64>(value));
            });
        }
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers_[i].slider->setValue(static_cast<double>(numbers[i].value), static_cast<double>(numbers[i].low),
                                     static_cast<double>(numbers[i].high));
    }
}

void PlanForm::fillChoices(const std::vector<PlanChoice>& choices) {
    if (!std::ranges::equal(choices, choices_, {}, &PlanChoice::key, &std::pair<std::string, NamedCombo*>::first)) {
        for (const auto& [key, combo] : choices_) {
            delete combo;
        }
        choices_.clear();
        auto* row = static_cast<QHBoxLayout*>(choiceRow_->layout());
        for (const PlanChoice& choice : choices) {
            auto* combo = new NamedCombo(choice.label, false, choiceRow_);
            combo->setToolTip(choice.tip);
            for (const auto& [value, words] : choice.values) {
                combo->addItem(words, value);
            }
            row->insertWidget(static_cast<int>(choices_.size()), combo);
            connect(combo, &QComboBox::activated, this, [this, key = choice.key, combo] {
                emit choiceChanged(textOf(key), combo->currentData().toString());
            });
            choices_.emplace_back(choice.key, combo);
        }
        choiceRow_->setVisible(!choices.empty());
        fitHeight();
    }
    for (std::size_t i = 0; i < choices.size(); ++i) {
        choices_[i].second->setCurrentIndex(choices_[i].second->findData(choices[i].value));
    }
}

void PlanForm::fitHeight() {
    setFixedHeight(kPlanFormHeight + std::max(checkRows_->count() - 1, 0) * kCheckRowHeight +
                   (choices_.empty() ? 0 : kChoiceRowHeight));
}

void PlanForm::fillChecks(const engine::Experiment& experiment) {
    const std::vector<engine::PlanSwitchSpec> specs = engine::planSwitches(experiment);
    const auto nameOf = [](const Check& check) { return check.box->text(); };
    if (!std::ranges::equal(specs, checks_, {}, switchName, nameOf)) {
        while (QLayoutItem* item = checkRows_->takeAt(0)) {
            delete item->widget();
            delete item;
        }
        checks_.clear();
        QHBoxLayout* line = nullptr;
        for (const engine::PlanSwitchSpec& spec : specs) {
            if (checks_.size() % kChecksOfRow == 0) {
                auto* holder = new QWidget(this);
                line = new QHBoxLayout(holder);
                line->setContentsMargins(0, 0, 0, 0);
                line->setSpacing(8);
                checkRows_->addWidget(holder);
            }
            auto* box = new QCheckBox(switchName(spec), this);
            auto* saves = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
            line->addWidget(box);
            line->addWidget(saves);
            line->addSpacing(20);
            const int row = static_cast<int>(checks_.size());
            connect(box, &QCheckBox::toggled, this, [this, row](bool on) { emit switchChanged(row, on); });
            checks_.push_back({box, saves});
        }
        for (int row = 0; row < checkRows_->count(); ++row) {
            static_cast<QHBoxLayout*>(checkRows_->itemAt(row)->widget()->layout())->addStretch(1);
        }
        fitHeight();
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
        const QSignalBlocker blocker(checks_[i].box);
        checks_[i].box->setChecked(engine::isOn(experiment, specs[i]));
    }
}

void PlanForm::setDraft(const PlanDraft& draft) {
    const auto context = static_cast<double>(draft.context());
    const double top = std::max(static_cast<double>(context_->slider()->maximum()) * engine::kContextUnit, context);
    context_->setName(draft.asks() ? tr("Prompt, tokens") : tr("Context, tokens"));
    context_->setValue(context, 0, top);
    const std::vector<PlanChoice> choices = draft.choices();
    fillNumbers(draft.numbers(), !choices.empty());
    fillChoices(choices);
    fillChecks(draft.experiment());
}

void PlanForm::setAnswer(const engine::WhatIf& answer, std::int64_t axisTop) {
    if (!context_->slider()->isSliderDown()) {
        context_->setSteps(static_cast<int>(axisTop / engine::kContextUnit), 1,
                           kContextPage / static_cast<int>(engine::kContextUnit));
        context_->setValue(context_->value(), 0, static_cast<double>(axisTop));
    }
    const engine::WhatIfSet& set = answer.set();
    context_->setLimit(set.lineKnown ? std::optional(static_cast<double>(set.line.longest)) : std::nullopt);
    for (std::size_t i = 0; i < std::min(checks_.size(), answer.switches.size()); ++i) {
        checks_[i].saves->setText(savesText(answer.switches[i]));
    }
}

NumberSlider* PlanForm::number(const std::string& key) const {
    const auto found = std::ranges::find(numbers_, key, &Number::key);
    return found == numbers_.end() ? nullptr : found->slider;
}

NamedCombo* PlanForm::choice(const std::string& key) const {
    const auto found = std::ranges::find(choices_, key, &std::pair<std::string, NamedCombo*>::first);
    return found == choices_.end() ? nullptr : found->second;
}

QCheckBox* PlanForm::check(int row) const {
    return row >= 0 && row < static_cast<int>(checks_.size()) ? checks_[static_cast<std::size_t>(row)].box : nullptr;
}

bool PlanForm::held() const {
    return context_->slider()->isSliderDown() ||
           std::ranges::any_of(numbers_, [](const Number& number) { return number.slider->slider()->isSliderDown(); });
}

} // namespace vitrine::ui
