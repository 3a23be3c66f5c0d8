// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/queue/queue_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/sweep/sweep_table.h"
#include "ui/models/common/format.h"
#include "ui/models/queue/queue_words.h"
#include "ui/models/run/experiment_form.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/chip_row.h"
#include "ui/widgets/plots/fact_rows.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kFixedShown = 9;

QStringList textsOf(const std::vector<std::string>& values) {
    QStringList out;
    for (const std::string& value : values) {
        out << QString::fromStdString(value);
    }
    return out;
}

/// The list of chips after a text was typed: checked by the option, without values that are there already.
QStringList withTyped(const std::string& key, const QStringList& before, const QString& typed) {
    QStringList out = before;
    for (const std::string& value : engine::parseSweepValues(key, typed.toStdString())) {
        const QString text = QString::fromStdString(value);
        engine::parseSweepValues(
            key, (out.isEmpty() ? text : out.join(QLatin1Char(',')) + QLatin1Char(',') + text).toStdString());
        out << text;
    }
    return out;
}

/// Whether an option can vary: it has one value and names no output.
bool canVary(const engine::OptionSpec& option, const engine::Workload& workload) {
    using engine::OptionType;
    const bool list = option.type == OptionType::TokenList || option.type == OptionType::TextList ||
                      option.type == OptionType::KeyValues;
    const bool output =
        std::ranges::find(workload.outputs, option.key, &engine::WorkloadOutput::key) != workload.outputs.end();
    return !list && !output && option.key != "plan" && engine::optionApplies(option, workload.name, false);
}

} // namespace

QList<QWidget*> QueuePanel::stops() const {
    return {order_, fixed_, rule_, against_, live_};
}

void QueuePanel::beginDraft(engine::SweepPlan plan) {
    draft_ = std::move(plan);
    header_->setTitle(tr("New sweep"));
    copy_->hide();
    againstBox_->hide();
    buttons_->hide();
    for (QWidget* box : {sweepBox_, ruleBox_}) {
        box->show();
    }
    showPlan(*draft_, true);
    updateDraft();
}

void QueuePanel::endDraft() {
    draft_.reset();
}

void QueuePanel::setQueue(const engine::RunQueue& queue, const std::string& sweep, std::int64_t chosen,
                          std::int64_t nowMs) {
    if (draft_) {
        return;
    }
    const auto plan = queue.sweeps().find(sweep);
    const bool shown = plan != queue.sweeps().end();
    sweepBox_->setVisible(shown);
    ruleBox_->setVisible(shown);
    copy_->setVisible(shown);
    start_->hide();
    cancel_->hide();
    if (shown) {
        header_->setTitle(tr("Sweep %1").arg(QString::fromStdString(sweep)));
        showPlan(plan->second, false);
        showCounts(queue, sweep, nowMs);
    } else {
        const engine::QueuedRun* run = queue.find(chosen);
        header_->setTitle(run != nullptr ? runText(chosen) + QLatin1Char(' ') + QString::fromStdString(run->name)
                                         : tr("Run"));
        showFixed(run != nullptr ? run->spec : std::string(), nullptr);
    }
    showAgainst(queue, sweep);
}

void QueuePanel::showPlan(const engine::SweepPlan& plan, bool editable) {
    filling_ = true;
    showChips(plan, editable);
    order_->setCurrentIndex(plan.order == engine::SweepOrder::FromTheMiddleOut ? 1 : 0);
    order_->setEnabled(editable);
    another_->setVisible(editable);
    start_->setVisible(editable);
    cancel_->setVisible(editable);
    if (editable) {
        another_->clear();
        another_->addItem(tr("Vary another"));
        const auto base = engine::Experiment::read(plan.base);
        for (const engine::OptionSpec& option : engine::optionTable()) {
            const bool varies =
                std::ranges::find(plan.options, option.key, &engine::SweepOption::key) != plan.options.end();
            if (base && !varies && canVary(option, base->workload())) {
                const QString key = textOf(option.key);
                another_->addItem(ExperimentForm::label(key), key);
            }
        }
    }
    showFixed(plan.base, &plan);
    const bool rewards = engine::earnsRewards(base::parsedObject(plan.base));
    rule_->setText(rewards ? tr("End a run whose evaluation reward is") : tr("End a run whose evaluation loss is"));
    ruleSide_->setText(rewards ? tr("below the best at the same step,") : tr("above the best at the same step,"));
    rule_->setChecked(plan.rule.has_value());
    if (plan.rule) {
        above_->setText(QString::number(plan.rule->above, 'f', 3));
        from_->setText(QString::number(plan.rule->from));
    }
    filling_ = false;
}

void QueuePanel::showChips(const engine::SweepPlan& plan, bool editable) {
    const bool same = rows_.size() == plan.options.size() &&
                      std::ranges::all_of(plan.options, [&](const auto& option) { return rows_.contains(option.key); });
    if (!same) {
        for (const auto& [key, row] : rows_) {
            row->hide();
            row->deleteLater(); // one of them may be what called this
        }
        rows_.clear();
        for (const engine::SweepOption& option : plan.options) {
            auto* row = new ChipRow(
                ExperimentForm::label(QString::fromStdString(option.key)),
                [key = option.key](const QStringList& before, const QString& typed) {
                    return withTyped(key, before, typed);
                },
                this);
            chips_->addWidget(row);
            rows_[option.key] = row;
            connect(row, &ChipRow::valuesChanged, this, &QueuePanel::updateDraft);
        }
    }
    for (const engine::SweepOption& option : plan.options) {
        rows_[option.key]->setValues(textsOf(option.values));
        rows_[option.key]->setEditable(editable);
    }
}

void QueuePanel::showFixed(const std::string& spec, const engine::SweepPlan* plan) {
    std::vector<FactRow> rows;
    const auto experiment = engine::Experiment::read(spec);
    if (experiment) {
        rows.push_back({.name = tr("Workload"),
                        .values = {{tr(std::string(experiment->workload().title).c_str())}},
                        .muted = true});
        for (const engine::OptionSpec& option : engine::optionTable()) {
            const std::string key(option.key);
            const bool varies = plan != nullptr &&
                                std::ranges::find(plan->options, key, &engine::SweepOption::key) != plan->options.end();
            const std::string value = experiment->has(key) ? experiment->valueText(key) : std::string();
            if (varies || value.empty() || value == option.defaultText || rows.size() == kFixedShown) {
                continue;
            }
            QString text = QString::fromStdString(value);
            if (engine::namesFiles(option)) { // folders before the name are in the tool tip
                text = text.section(QLatin1Char('/'), -1);
            }
            FactRow row{.name = ExperimentForm::label(QString::fromStdString(key)), .values = {{text}}, .muted = true};
            row.tip = row.name + QStringLiteral(": ") + QString::fromStdString(value);
            rows.push_back(std::move(row));
        }
    }
    fixedHead_->setVisible(!rows.empty());
    fixed_->setVisible(!rows.empty());
    fixed_->setRows(std::move(rows), {});
}

void QueuePanel::showCounts(const engine::RunQueue& queue, const std::string& sweep, std::int64_t nowMs) {
    const engine::SweepPlan& plan = queue.sweeps().find(sweep)->second;
    QStringList shape;
    for (const engine::SweepOption& option : plan.options) {
        shape << QString::number(option.values.size());
    }
    double planned = 0, used = 0, saved = 0, left = 0;
    std::size_t byRule = 0;
    constexpr double kMs = 1000;
    const std::vector<const engine::QueuedRun*> runs = queue.runsOf(sweep);
    for (const engine::QueuedRun* run : runs) {
        const double plannedSeconds = run->price ? run->price->seconds : 0;
        planned += plannedSeconds;
        const bool running = run->state == engine::QueueState::Running;
        const double gone =
            run->startedMs > 0 ? static_cast<double>((running ? nowMs : run->endedMs) - run->startedMs) / kMs : 0;
        used += gone;
        if (run->state == engine::QueueState::EndedByRule) {
            ++byRule;
            saved += std::max(plannedSeconds - gone, 0.0);
        }
        left += engine::hasEnded(run->state) ? 0 : engine::secondsLeft(*run, nowMs);
    }
    number_->setText(runs.size() == 1 ? tr("1 run") : tr("%1 runs").arg(runs.size()));
    shape_->setText(shape.join(QStringLiteral(" x ")));
    times_->setText(
        tr("%1 planned: %2 used, %3 saved by the rule, %4 left.")
            .arg(planned > 0 ? spanText(planned) : unknownText(), spanText(used), spanText(saved), spanText(left)));
    ruleHead_->setTitle(byRule == 0   ? tr("Stop rule")
                        : byRule == 1 ? tr("Stop rule, 1 run ended")
                                      : tr("Stop rule, %1 runs ended").arg(byRule));
}

void QueuePanel::showAgainst(const engine::RunQueue& queue, const std::string& sweep) {
    const engine::QueuedRun* run = queue.running();
    running_ = run != nullptr ? run->number : 0;
    buttons_->setVisible(run != nullptr);
    const auto verdict = run != nullptr ? queue.verdict(run->number) : std::nullopt;
    againstBox_->setVisible(verdict.has_value());
    if (run == nullptr) {
        return;
    }
    end_->setText(tr("End %1").arg(runText(run->number)));
    endSweep_->setVisible(!sweep.empty());
    if (!verdict) {
        return;
    }
    const auto plan = queue.sweeps().find(run->sweep);
    const bool ruled = plan != queue.sweeps().end() && plan->second.rule.has_value();
    const engine::StopRule rule = ruled ? *plan->second.rule : engine::StopRule{};
    const auto three = [](double value) { return QString::number(value, 'f', 3); };
    againstHead_->setTitle(ruled ? tr("%1 against the rule").arg(runText(run->number))
                                 : tr("%1 against the best").arg(runText(run->number)));
    FactRow value{
        .name = run->earnsRewards ? tr("Evaluation reward") : tr("Evaluation loss"),
        .values = {{three(verdict->value)}, {tr("at step %1").arg(countText(verdict->step)), TextColor::Text3}},
        .strong = true,
        .muted = true};
    FactRow best{.name = tr("Best at that step"),
                 .values = {{three(verdict->best)}, {runText(verdict->bestNumber), TextColor::Text3}},
                 .muted = true};
    FactRow behind{.name = run->earnsRewards ? tr("Below it") : tr("Above it"),
                   .values = {{behindText(verdict->behind, run->earnsRewards),
                               verdict->behind > 0 ? TextColor::Bad : TextColor::Good},
                              {ruled ? tr("limit %1").arg(three(rule.above)) : QString(), TextColor::Text3}},
                   .muted = true};
    against_->setRows({value, best, behind}, {70, 84});
    goesOn_->setText(verdict->ends ? tr("The rule ends it.")
                     : ruled && verdict->step < rule.from
                         ? tr("It goes on: the rule begins at step %1.").arg(countText(rule.from))
                         : tr("It goes on."));
}

std::optional<engine::StopRule> QueuePanel::ruleOfFields() const {
    bool good = false, whole = false;
    const double above = above_->text().toDouble(&good);
    const qint64 from = from_->text().toLongLong(&whole);
    const bool right = good && above >= 0 && whole && from >= 0;
    return right ? std::optional(engine::StopRule{above, from}) : std::nullopt;
}

void QueuePanel::takeRule() {
    if (filling_) {
        return;
    }
    const auto rule = ruleOfFields();
    setAlarming(above_, !rule);
    setAlarming(from_, !rule);
    if (!rule) {
        return;
    }
    const std::optional<engine::StopRule> chosen = rule_->isChecked() ? rule : std::nullopt;
    if (draft_) {
        draft_->rule = chosen;
    } else {
        emit ruleChanged(chosen);
    }
}

void QueuePanel::updateDraft() {
    if (!draft_ || filling_) {
        return;
    }
    std::size_t count = 1;
    for (engine::SweepOption& option : draft_->options) {
        option.values.clear();
        for (const QString& value : rows_.at(option.key)->values()) {
            option.values.push_back(value.toStdString());
        }
        count *= option.values.size();
    }
    draft_->order = order_->currentIndex() == 1 ? engine::SweepOrder::FromTheMiddleOut : engine::SweepOrder::AsGiven;
    QString wrong;
    try {
        count = engine::sweepRuns(*draft_).size();
    } catch (const base::Error& error) {
        wrong = QString::fromStdString(error.message());
    }
    const bool some = !draft_->options.empty() && count > 0;
    number_->setText(count == 1 ? tr("1 run") : tr("%1 runs").arg(count));
    shape_->setText({});
    times_->setText(!wrong.isEmpty()          ? wrong
                    : draft_->options.empty() ? tr("Choose an option that varies.")
                    : !some                   ? tr("Give each option a value.")
                                              : tr("Memory and time are planned when it is added."));
    start_->setEnabled(some && wrong.isEmpty());
}

} // namespace vitrine::ui
