// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/switch_prices.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/result_fields.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/planner/plan_line.h"
#include "engine/workload/planner/plan_price.h"
#include "engine/workload/planner/plan_sets.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/models/planner/plan_words.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

using engine::Experiment;
using engine::PlanPrice;
using engine::PlanPricer;
using engine::PlanSwitchSpec;

constexpr double kCostly = 0.01;    ///< of the step's time: a switch that costs less is never hinted at
constexpr double kSpareShare = 0.1; ///< of the budget, that must stay spare without it

std::string valueOf(const engine::OptionEdit& edit) {
    return std::get<std::string>(edit.value);
}

/// Short, for rows and bands.
QString nameOf(const PlanSwitchSpec& spec) {
    return spec.on.key == "checkpoint" ? QObject::tr("Offload") : switchName(spec);
}

/// What a switch does as it is set.
QString settingText(const Experiment& planned, const SwitchPrice& one, std::int64_t context, std::uint64_t host) {
    const QString value = textOf(planned.text(one.key));
    if (one.key == "loss_chunks") {
        const qint64 chunks = value.toLongLong();
        return !one.on      ? QObject::tr("off: all logits at once")
               : chunks > 1 ? QObject::tr("%1 chunks of %2 tokens")
                                  .arg(countText(chunks), countText((context + chunks - 1) / chunks))
                            : QObject::tr("chunks by the free memory");
    }
    if (one.key == "checkpoint") {
        return one.on ? QObject::tr("%1 of host memory").arg(bytesText(host))
                      : QObject::tr("off: inputs stay on the device");
    }
    if (one.key == "tiled_mlp") {
        return one.on ? QObject::tr("in tiles of the sequence") : QObject::tr("off: the MLP runs at once");
    }
    return one.on ? QObject::tr("moments of a byte each") : QObject::tr("off: moments in float32");
}

/// Automatic techniques are on where turning them off changes the step.
bool takesEffect(PlanPricer& pricer, const Experiment& planned, const PlanSwitchSpec& spec, const PlanPrice& now) {
    if (planned.text(spec.on.key) != "auto") {
        return engine::isOn(planned, spec);
    }
    const PlanPrice without = pricer.price(engine::edited(planned, {spec.off}), {});
    return without.known() && (without.peak != now.peak || without.seconds != now.seconds);
}

void priceSwitches(SwitchPrices& out, PlanPricer& pricer, const Experiment& planned, const PlanPrice& now) {
    for (const PlanSwitchSpec& spec : engine::planSwitches(planned)) {
        SwitchPrice one;
        one.name = nameOf(spec);
        one.key = spec.on.key;
        one.on = takesEffect(pricer, planned, spec, now);
        const engine::OptionEdit& edit = one.on ? spec.off : spec.on;
        one.other = valueOf(edit);
        const PlanPrice other = pricer.price(engine::edited(planned, {edit}), {});
        one.known = other.known();
        one.otherPeak = other.peak;
        one.otherSeconds = other.seconds;
        one.otherFits = other.fits;
        one.setting = settingText(planned, one, out.context, now.host);
        out.switches.push_back(std::move(one));
    }
}

/// The set that has these techniques and no other; -1: none.
int chosenSet(const std::vector<SwitchPrice>& switches) {
    const auto on = [&](const char* key) {
        const auto found = std::ranges::find(switches, key, &SwitchPrice::key);
        return found != switches.end() && found->on;
    };
    const std::array<bool, 3> has{on("loss_chunks"), on("checkpoint"), on("tiled_mlp")};
    const auto first = std::ranges::find(has, false);
    return std::any_of(first, has.end(), [](bool each) { return each; }) ? -1 : static_cast<int>(first - has.begin());
}

void findLimits(SwitchPrices& out, PlanPricer& pricer, const Experiment& planned) {
    const int chosen = chosenSet(out.switches);
    const std::vector<engine::PlanSetSpec> sets = engine::planSets(planned);
    for (std::size_t i = 0; i < sets.size(); ++i) {
        const Experiment set = engine::edited(planned, sets[i].edits);
        const engine::PlanLine line = engine::planLine(pricer, set, {});
        out.limits.push_back(
            {i == 0 ? QObject::tr("no switch") : setName(sets[i]), line.longest, static_cast<int>(i) == chosen});
        if (line.longest > 0 && i + 1 == sets.size()) {
            out.host = pricer.price(engine::withContext(set, line.longest), {}).host;
        }
    }
}

double medianSeconds(const nlohmann::json& metrics) {
    const auto list = metrics.find(engine::result::kStepSeconds.key);
    std::vector<double> seconds;
    if (list != metrics.end() && list->is_array()) {
        for (const nlohmann::json& each : *list) {
            if (each.is_number()) {
                seconds.push_back(each.get<double>());
            }
        }
    }
    if (seconds.empty()) {
        return 0;
    }
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
}

QString signedBytes(std::uint64_t now, std::uint64_t other) {
    return now == other ? QObject::tr("0 B")
                        : (now < other ? QStringLiteral("\u2212") : QStringLiteral("+")) +
                              bytesText(now < other ? other - now : now - other);
}

QString signedMilliseconds(double seconds) {
    const double ms = seconds * 1000;
    const QString sign = ms > 0 ? QStringLiteral("+") : ms < 0 ? QStringLiteral("\u2212") : QString();
    return QObject::tr("%1%2 ms").arg(sign).arg(std::abs(ms), 0, 'f', std::abs(ms) < 10 ? 1 : 0);
}

FlatNode twoLineRow(const QString& name, const QString& peak, const QString& time) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(peak), FlatCell(time)};
    return node;
}

/// The switches that are on with this experiment, by their names.
QStringList switchesOf(const Experiment& spec) {
    QStringList names;
    for (const PlanSwitchSpec& each : engine::planSwitches(spec)) {
        if (engine::isOn(spec, each) && spec.text(each.on.key) != "auto") {
            names << nameOf(each);
        }
    }
    return names;
}

} // namespace

std::optional<SwitchPrices> switchPrices(const sessions::RunInfo& run, std::int64_t tokens,
                                         const std::vector<PastRun>& past) {
    const auto spec = Experiment::read(run.specJson);
    if (!spec || !engine::takesOption(*spec, "tiled_mlp")) {
        return std::nullopt;
    }
    try {
        SwitchPrices out;
        const std::int64_t parts = std::max<std::int64_t>(1, spec->maybeInteger("batch").value_or(1) *
                                                                 spec->maybeInteger("accumulate").value_or(1));
        out.context = engine::contextOf(*spec).value_or(std::max<std::int64_t>(1, tokens / parts));
        const QString device = runDevice(run);
        const Experiment planned = planFor(engine::plannedExperiment(*spec, out.context), device);
        PlanPricer pricer;
        const PlanPrice now = pricer.price(planned, {});
        if (!now.known()) {
            return std::nullopt;
        }
        out.peak = now.peak;
        out.seconds = now.seconds;
        out.budget = now.budget;
        out.band = errorBand(past, textOf(spec->text("model")), device);
        priceSwitches(out, pricer, planned, now);
        findLimits(out, pricer, planned);
        return out;
    } catch (const base::BadInput&) {
        return std::nullopt; // nothing that can be planned: the model is gone, or packs what a plan cannot know
    }
}

QString switchesText(const std::string& specJson) {
    const auto spec = Experiment::read(specJson);
    if (!spec || !engine::takesOption(*spec, "tiled_mlp")) {
        return {};
    }
    QStringList names = switchesOf(*spec);
    for (qsizetype i = 1; i < names.size(); ++i) {
        if (names[i].size() > 1 && names[i][1].isLower()) {
            names[i][0] = names[i][0].toLower();
        }
    }
    return names.join(QStringLiteral(", "));
}

std::optional<MeasuredPair> measuredPair(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& run,
                                         const TrainingRun& training, std::uint64_t peak) {
    const auto spec = Experiment::read(run.specJson);
    if (!spec || !training.resumedFrom() || peak == 0 || training.stepSeconds() <= 0) {
        return std::nullopt;
    }
    const std::string from = spec->text("resume");
    const auto earlier = std::find_if(runs.rbegin(), runs.rend(), [&](const sessions::RunInfo& each) {
        const auto other = each.id != run.id ? Experiment::read(each.specJson) : std::nullopt;
        const std::string output = other && engine::takesOption(*other, "output") ? other->text("output") : "";
        return !output.empty() && (from == output || from.starts_with(output + "/"));
    });
    if (earlier == runs.rend()) {
        return std::nullopt;
    }
    const auto before = Experiment::read(earlier->specJson);
    QStringList names;
    for (const PlanSwitchSpec& each : engine::planSwitches(*spec)) {
        if (before->text(each.on.key) != spec->text(each.on.key)) {
            names << nameOf(each);
        }
    }
    const nlohmann::json metrics = base::parsedObject(earlier->metricsJson);
    MeasuredPair out;
    out.before = engine::countOf(metrics, engine::result::kPeakBytes).value_or(0);
    out.beforeSeconds = medianSeconds(metrics);
    if (names.isEmpty() || out.before == 0 || out.beforeSeconds <= 0) {
        return std::nullopt;
    }
    out.name = names.join(QObject::tr(" and "));
    out.step = *training.resumedFrom() + 1;
    out.after = peak;
    out.afterSeconds = training.stepSeconds();
    return out;
}

FlatTreePtr switchTable(const SwitchPrices& prices, const std::optional<MeasuredPair>& measured) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Switch")}, {QObject::tr("Peak"), true}, {QObject::tr("Step time"), true}};
    for (std::size_t i = 0; i < prices.switches.size(); ++i) {
        const SwitchPrice& one = prices.switches[i];
        // The bytes and the time that it makes different where it is on.
        const std::uint64_t with = one.on ? prices.peak : one.otherPeak, without = one.on ? one.otherPeak : prices.peak;
        const double withSeconds = one.on ? prices.seconds : one.otherSeconds;
        const double withoutSeconds = one.on ? one.otherSeconds : prices.seconds;
        const QString other =
            (one.on ? QObject::tr("%1 without") : QObject::tr("%1 with")).arg(bytesText(one.otherPeak));
        FlatNode node = twoLineRow(one.name + QLatin1Char('\n') + one.setting,
                                   one.known ? signedBytes(with, without) + QLatin1Char('\n') + other : unknownText(),
                                   one.known ? stepChangeText(withSeconds, withoutSeconds) + QLatin1Char('\n') +
                                                   signedMilliseconds(withSeconds - withoutSeconds)
                                             : unknownText());
        node.cells.front().share = one.on ? 1.0 : 0.0;
        node.key = static_cast<quint64>(i) + 1;
        tree->nodes.push_back(std::move(node));
    }
    if (measured) {
        FlatNode node =
            twoLineRow(QObject::tr("%1\nmeasured at step %2").arg(measured->name, countText(measured->step)),
                       QObject::tr("%1\n%2 before")
                           .arg(signedBytes(measured->after, measured->before), bytesText(measured->before)),
                       stepChangeText(measured->afterSeconds, measured->beforeSeconds) + QLatin1Char('\n') +
                           signedMilliseconds(measured->afterSeconds - measured->beforeSeconds));
        node.key = prices.switches.size() + 1;
        tree->nodes.push_back(std::move(node));
    }
    return tree;
}

std::optional<SwitchHint> switchHint(const SwitchPrices& prices, const TrainingRun& training, std::int64_t checkpoint) {
    const auto spare = static_cast<double>(prices.budget) - static_cast<double>(prices.peak);
    for (std::size_t i = 0; i < prices.switches.size(); ++i) {
        const SwitchPrice& one = prices.switches[i];
        const double saved = prices.seconds - one.otherSeconds;
        const double bought = static_cast<double>(one.otherPeak) - static_cast<double>(prices.peak);
        if (!one.on || !one.known || !one.otherFits || prices.seconds <= 0 || saved < kCostly * prices.seconds ||
            spare < bought + kSpareShare * static_cast<double>(prices.budget)) {
            continue;
        }
        SwitchHint hint;
        hint.row = i;
        hint.title = QObject::tr("%1 does not pay here.").arg(one.name);
        hint.text = QObject::tr("%1 are spare. Without it the peak is %2")
                        .arg(bytesText(static_cast<std::uint64_t>(spare)), bytesText(one.otherPeak));
        if (const auto rest = training.rest()) {
            const double less = static_cast<double>(rest->steps) * rest->stepSeconds * saved / prices.seconds;
            hint.text += QObject::tr(" and the rest takes %1 less").arg(longTimeText(less));
        }
        hint.text += QLatin1Char('.');
        hint.button = checkpoint > 0 ? QObject::tr("Branch from %1 without it").arg(countText(checkpoint)) : QString();
        return hint;
    }
    return std::nullopt;
}

QString planBandText(const ErrorBand& band) {
    return QObject::tr("plan, \u00B1%1\u00A0%").arg(band.share * 100, 0, 'f', 1);
}

} // namespace vitrine::ui
