// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/batch_sweep.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/batching/batch_summary.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

/// What may differ between the runs of one sweep without being said.
constexpr const char* kUnsaid[] = {"slots", "outputs", "repeat", "profile", "save_trace", "kv_pages"};

bool distinguishes(std::string_view key) {
    // Of settings that are the machine's, a sweep has one.
    return key != "slots" && key != "backend" && key != "device_profile" && key != "kv_pages";
}

struct Described {
    const sessions::RunInfo* run;
    std::string rest; ///< of the experiment: equal in one sweep
    std::map<std::string, std::string> distinguishing;
    Json metrics;
};

Described described(const sessions::RunInfo& run) {
    Described out{&run, {}, {}, base::parsedObject(run.metricsJson)};
    auto experiment = engine::Experiment::read(run.specJson);
    for (const char* key : kUnsaid) {
        if (experiment) {
            experiment->unset(key);
        }
    }
    for (const auto& [key, value] : batchSettings(run)) {
        if (distinguishes(key)) {
            out.distinguishing[key] = value;
            if (experiment) {
                experiment->unset(key);
            }
        }
    }
    out.rest = experiment ? experiment->jsonText() : run.specJson;
    return out;
}

double shareOf(const Json& metrics, const engine::ResultField& kind, const std::string& share) {
    const Json* shares = engine::valueOf(metrics, kind);
    return shares != nullptr && shares->is_object() ? base::numberAt(*shares, share.c_str()).value_or(-1) : -1;
}

/// Of the settings only those that differ somewhere are part of a name.
QString seriesName(const Described& of, const std::vector<Described>& all) {
    QStringList parts;
    for (const char* key : batchSettingKeys()) {
        const auto valueOf = [key](const Described& one) {
            const auto found = one.distinguishing.find(key);
            return found == one.distinguishing.end() ? std::string() : found->second;
        };
        const std::string mine = valueOf(of);
        const bool differs = std::ranges::any_of(all, [&](const Described& other) { return valueOf(other) != mine; });
        if (!mine.empty() && (differs || std::string_view(key) == "mode")) {
            parts << batchSettingText(key, mine);
        }
    }
    return parts.join(QStringLiteral(", "));
}

void addPoint(SweepSeries& series, const SweepPoint& point) {
    const auto at =
        std::lower_bound(series.points.begin(), series.points.end(), point.slotCount,
                         [](const SweepPoint& p, std::int32_t slotCount) { return p.slotCount < slotCount; });
    if (at != series.points.end() && at->slotCount == point.slotCount) {
        *at = point;
    } else {
        series.points.insert(at, point);
    }
}

} // namespace

std::size_t Sweep::points() const {
    std::size_t count = 0;
    for (const SweepSeries& one : series) {
        count += one.points.size();
    }
    return count;
}

Sweep batchSweep(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b) {
    Sweep sweep;
    std::vector<Described> all;
    for (const sessions::RunInfo& run : runs) {
        if (isBatchRun(run) && run.status == sessions::RunStatus::Done) {
            all.push_back(described(run));
        }
    }
    const auto find = [&](sessions::RunId id) {
        return std::ranges::find_if(all, [id](const Described& one) { return one.run->id == id; });
    };
    const auto reference = find(a) != all.end() ? find(a) : find(b);
    if (reference == all.end()) {
        return sweep;
    }
    const std::string rest = reference->rest;
    std::erase_if(all, [&](const Described& one) { return one.rest != rest; });
    const bool p95 = std::ranges::all_of(
        all, [](const Described& one) { return shareOf(one.metrics, engine::result::kTpot, "p95") >= 0; });
    sweep.share = p95 ? QStringLiteral("p95") : QStringLiteral("p90");
    std::map<std::map<std::string, std::string>, std::size_t> byKind;
    for (const Described& one : all) {
        SweepPoint point;
        point.run = one.run->id;
        point.slotCount = static_cast<std::int32_t>(
            std::clamp(engine::numberOf(one.metrics, engine::result::kSlots).value_or(0), 0.0, 1e6));
        point.tokensPerSecond = engine::numberOf(one.metrics, engine::result::kTokensPerSecond).value_or(-1);
        point.tpot = shareOf(one.metrics, engine::result::kTpot, sweep.share.toStdString());
        point.ttft = shareOf(one.metrics, engine::result::kTtft, sweep.share.toStdString());
        if (point.slotCount < 1 || !(point.tokensPerSecond >= 0)) {
            continue;
        }
        const auto [place, added] = byKind.try_emplace(one.distinguishing, sweep.series.size());
        if (added) {
            sweep.series.push_back({seriesName(one, all), {}, false, false});
        }
        SweepSeries& series = sweep.series[place->second];
        addPoint(series, point);
        series.hasA = series.hasA || one.run->id == a;
        series.hasB = series.hasB || one.run->id == b;
    }
    std::stable_sort(sweep.series.begin(), sweep.series.end(), [](const SweepSeries& x, const SweepSeries& y) {
        const auto rank = [](const SweepSeries& s) { return s.hasA ? 0 : s.hasB ? 1 : 2; };
        return rank(x) < rank(y);
    });
    return sweep;
}

FlatTreePtr sweepTable(const Sweep& sweep) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Series")},
                      {QObject::tr("Slots"), true},
                      {QObject::tr("Tokens/s"), true},
                      {QObject::tr("TPOT %1").arg(sweep.share), true},
                      {QObject::tr("TTFT %1").arg(sweep.share), true},
                      {QObject::tr("Run"), true}};
    const auto time = [](double seconds) {
        return seconds >= 0 ? FlatCell(durationText(static_cast<base::TimeNs>(std::llround(seconds * 1e9))),
                                       QVariant(seconds), QString::number(seconds, 'g', 9))
                            : FlatCell(unknownText(), QVariant(-1.0));
    };
    for (const SweepSeries& series : sweep.series) {
        for (const SweepPoint& point : series.points) {
            FlatNode node;
            node.key = static_cast<quint64>(point.run);
            node.cells = {FlatCell(series.name),
                          {countText(point.slotCount), QVariant(point.slotCount)},
                          {countText(std::llround(point.tokensPerSecond)), QVariant(point.tokensPerSecond),
                           QString::number(point.tokensPerSecond, 'g', 9)},
                          time(point.tpot),
                          time(point.ttft),
                          {QString::number(point.run), QVariant::fromValue<qlonglong>(point.run)}};
            table->nodes.push_back(std::move(node));
        }
    }
    return table;
}

} // namespace vitrine::ui
